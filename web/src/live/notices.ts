import { element } from "../page/elements.ts";

/** Shows, replaces or, with an empty text, removes the notice of a topic. */
export function showNotice(topic: "transport" | "publishing", text: string): void {
  const host = element("notices");
  let notice = host.querySelector<HTMLElement>(`[data-topic="${topic}"]`);
  if (text === "") {
    notice?.remove();
    return;
  }
  if (notice === null) {
    notice = document.createElement("p");
    notice.className = "notice";
    notice.dataset["topic"] = topic;
    host.append(notice);
  }
  notice.textContent = text;
}
