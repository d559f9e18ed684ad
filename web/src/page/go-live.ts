import { fetchNode } from "../shared/node.ts";
import { element } from "./elements.ts";

/** Offered once the page has had time for its first picture, in milliseconds. */
const PAUSE = 1_500;

/** Offers to go live where everybody may who sees the page: at the node's own machine. Others need a link of its operator. */
async function offer(): Promise<void> {
  const node = await fetchNode(location.href).catch(() => undefined);
  element("go-live").hidden = node?.local !== true;
}

setTimeout(() => void offer(), PAUSE);
