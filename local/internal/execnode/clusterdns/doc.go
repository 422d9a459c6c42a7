// Package clusterdns answers the names of a cluster's services and pods, as the DNS of a cluster does, from what the
// API server says of Services and EndpointSlices; other names go to the machine's own servers.
//
// Where there is no cluster DNS to ask, because pods share the machine's network, it gives the same names as lines for
// a hosts file. It may be used by package execnode alone, reads and never writes, and knows nothing of processes.
package clusterdns
