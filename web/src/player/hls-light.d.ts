/** hls.js without captions, DRM and second sound tracks; its types are those of the whole. */
declare module "hls.js/light" {
  export { default } from "hls.js";
}
