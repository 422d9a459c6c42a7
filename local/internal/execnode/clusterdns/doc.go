// Package clusterdns resolves the names of a cluster's services and pods, as a cluster's DNS does, from Services and
// EndpointSlices; other names are forwarded to the machine's DNS servers.
//
// If pods share the machine's network, and so cannot use another DNS server, it provides the same names as lines of a
// hosts file. Only package execnode uses it. It only reads, and knows nothing of processes.
package clusterdns
