// Elements and text. The only way in which this page makes either: text is a text node, never
// markup, since reports hold what users typed. Never sets innerHTML nor an event attribute.

export type Child = Node | string | number | null | undefined | false | readonly Child[];
type Attributes = Record<string, string | number | boolean | undefined>;

/** An element with attributes (true: present, false or undefined: absent) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) throw new Error(`no event attributes: ${name}`);
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

export function append(parent: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else if (child instanceof Node) parent.append(child);
    else parent.append(document.createTextNode(String(child)));
  }
}

let ids = 0;

/** An id that no other element of the page has. */
export const uniqueId = (prefix: string): string => `${prefix}-${++ids}`;

/** The element of the page that has this id. */
export function need(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no ${id}`);
  return element;
}
