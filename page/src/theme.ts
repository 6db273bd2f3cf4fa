// The button for light and dark.

/** The other of light and dark than what is shown. */
export function theme(button: Element, changed: () => void = () => {}): void {
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = root.style.colorScheme || (dark ? "dark" : "light");
    root.style.colorScheme = now === "dark" ? "light" : "dark";
    changed();
  });
}
