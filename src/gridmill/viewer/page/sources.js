// Where the engine and the files come from: inside the page (an exported file), from the server that `gridmill view`
// started, or from the reader's hands (a dialog, a drop).

import {FileError} from "./bytes.js";
import {fromSevenBits} from "./seven_bits.js";

const MOST_FILE = 64 << 20;

function island(id) {
  return document.getElementById(id);
}

/** The bytes of engine.wasm; of an exported page the module, which early.js compiles. */
export async function engineSource() {
  if (window.gridmillModule) return window.gridmillModule;
  const answer = await fetch("engine.wasm");
  if (!answer.ok) throw new FileError(`the engine is missing: ${answer.status}; build it with \`make viewer\``);
  return new Uint8Array(await answer.arrayBuffer());
}

/** What to begin with: {files: [{name, url | island}], game, play}. */
export async function startOf() {
  const inside = island("data-start");
  if (inside) return JSON.parse(inside.textContent);
  try {
    const answer = await fetch("start.json");
    return answer.ok ? await answer.json() : {files: []};
  } catch {
    return {files: []};
  }
}

export async function fileBytes({name, url, inside}) {
  if (inside) return fromSevenBits(island(inside).textContent);
  const answer = await fetch(url);
  if (!answer.ok) throw new FileError(`cannot read ${name}: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** The replays that the server has, the newest first; none in an exported page. */
export async function listedFiles() {
  if (island("data-engine")) return [];
  try {
    const answer = await fetch("files.json");
    const found = answer.ok ? await answer.json() : [];
    return found.filter((file) => file.path.endsWith(".replay")).sort((a, b) => b.modified - a.modified).slice(0, 200);
  } catch {
    return [];
  }
}

/** Ask the reader for a file. */
export function chosenFiles() {
  return new Promise((resolve) => {
    const input = document.createElement("input");
    input.type = "file";
    input.multiple = true;
    input.addEventListener("change", () => resolve([...input.files]));
    input.addEventListener("cancel", () => resolve([]));
    input.click();
  });
}

/** A file of the reader's as bytes, refused before it is read if it is too large. */
export async function bytesOf(file) {
  if (file.size > MOST_FILE) throw new FileError(`replay: expected at most ${MOST_FILE} bytes, got ${file.size}`);
  return new Uint8Array(await file.arrayBuffer());
}

/** Files dropped anywhere on the page. */
export function onDrop(node, use) {
  let depth = 0;
  const over = (on) => document.body.classList.toggle("dropping", on);
  node.addEventListener("dragenter", (event) => {
    event.preventDefault();
    depth += 1;
    over(true);
  });
  node.addEventListener("dragover", (event) => event.preventDefault());
  node.addEventListener("dragleave", () => {
    depth -= 1;
    if (depth <= 0) over(false);
  });
  node.addEventListener("drop", (event) => {
    event.preventDefault();
    depth = 0;
    over(false);
    use([...event.dataTransfer.files]);
  });
}

/** Give bytes to the reader as a file. */
export function download(bytes, name) {
  const url = URL.createObjectURL(new Blob([bytes], {type: "application/octet-stream"}));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
