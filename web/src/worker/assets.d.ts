/** Addresses of files that the bundler places. */
declare module "*?url" {
  const url: string;
  export default url;
}
