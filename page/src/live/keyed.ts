// Lists that change under a reader's eyes: what stays keeps its element, with its focus, its
// selection and what was unfolded in it.

export interface Row<T> {
  element: Element;
  update: (item: T) => void;
}

const known = new WeakMap<Element, Map<string, Row<never>>>();

/** Makes the children of `parent` those of `items`, in their order. */
export function keyed<T>(
  parent: Element,
  items: readonly T[],
  keyOf: (item: T) => string,
  make: (item: T) => Row<T>,
): void {
  const old = (known.get(parent) ?? new Map()) as Map<string, Row<T>>;
  const rows = new Map<string, Row<T>>();
  for (const item of items) {
    const key = keyOf(item);
    const row = old.get(key) ?? make(item);
    row.update(item);
    rows.set(key, row);
  }
  for (const [key, row] of old) if (!rows.has(key)) row.element.remove();
  let place = parent.firstElementChild;
  for (const { element } of rows.values()) {
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
  }
  known.set(parent, rows as unknown as Map<string, Row<never>>);
}

/** Sets a text that may be the same: nothing happens then. */
export function text(element: Element, content: string): void {
  if (element.textContent !== content) element.textContent = content;
}

/** Shows or hides. */
export function shown(element: HTMLElement, visible: boolean): void {
  if (element.hidden === visible) element.hidden = !visible;
}

/** Replaces the classes. */
export function classes(element: Element, names: string): void {
  if (element.className !== names) element.className = names;
}
