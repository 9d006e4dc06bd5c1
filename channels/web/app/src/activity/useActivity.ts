/** The state of the platform as it changes, over a connection of its own while a page shows it. */
import { useEffect, useState } from "react";

import { GatewaySocket } from "../api/socket";
import { afterEnvelope, NOTHING, type Activity } from "./activity";

export function useActivity(): { activity: Activity; isConnected: boolean } {
  const [activity, setActivity] = useState(NOTHING);
  const [isConnected, setConnected] = useState(true);
  useEffect(() => {
    const socket = new GatewaySocket({
      wanted: () => ({}),
      envelope: (envelope) => setActivity((state) => afterEnvelope(state, envelope)),
      connected: (is) => {
        setConnected(is);
        if (is) setActivity((state) => ({ ...NOTHING, ended: state.ended })); // the present states follow
      },
    });
    socket.open();
    return () => socket.close();
  }, []);
  return { activity, isConnected };
}
