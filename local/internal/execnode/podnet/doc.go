// Package podnet gives pods of local nodes a network of their own: each pod a network namespace with one address, all
// of them on one bridge per process.
//
// The bridge is in a namespace too, and a veth pair connects it to the machine. So the machine gets one interface and
// one private subnet, its firewall does not see traffic between pods, and when the process dies, however it dies, the
// kernel removes everything: no namespace has a name, and nothing has to be cleaned up.
//
// It needs root. Only package execnode uses it. It knows addresses and names of interfaces, not pods.
package podnet
