import type { NamecastPlayer as Player } from "namecast-player";
import type { ForwardRefExoticComponent, HTMLAttributes, RefAttributes } from "react";

/** Events of the element: `onStateChange` is called for `statechange`. */
type PlayerEvents = {
  [Name in
    | "onPlay" | "onPlaying" | "onPause" | "onWaiting" | "onTimeUpdate" | "onSeeking" | "onSeeked" | "onVolumeChange" | "onError" | "onStateChange"
    | "onQualityChange" | "onLatencyChange" | "onCaptionsChange" | "onTitleChange" | "onEnterPictureInPicture" | "onLeavePictureInPicture"]?: (event: Event & { readonly currentTarget: Player }) => void;
};

/** Attributes of `<namecast-player>`. */
export interface NamecastPlayerAttributes {
  /** Address of the node's page with the name and key of the stream: `https://node.example/?name=/show&key=…`. */
  src?: string;
  autoplay?: boolean;
  muted?: boolean;
  controls?: boolean;
  /** Whether the picture is received where nobody sees it, too. */
  background?: boolean;
}

export type NamecastPlayerProps = NamecastPlayerAttributes & PlayerEvents & Omit<HTMLAttributes<Player>, keyof PlayerEvents>;

/** `<namecast-player>` as a component; `ref` is the element. */
export declare const NamecastPlayer: ForwardRefExoticComponent<NamecastPlayerProps & RefAttributes<Player>>;

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "namecast-player": NamecastPlayerAttributes & HTMLAttributes<Player> & RefAttributes<Player>;
    }
  }
}
