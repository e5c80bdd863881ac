// Elements of the page, made without markup in strings: nothing that is said can become markup.

// attributes: of HTML, as they are called there; true stands for an empty value, false and null
// leave one out, a function under `onclick` and the like listens.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}
