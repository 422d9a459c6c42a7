// Package podnet gives pods of local nodes a network of their own: each pod a network namespace with one address, all
// of them on one bridge per process.
//
// The bridge is in a namespace too, and one interface pair joins it to the machine. So the machine gets one interface
// and one private subnet, its firewall does not see what pods say to each other, and when the process dies, however it
// dies, the kernel takes everything down: no namespace has a name, and nothing is left to clean up.
//
// It needs root. It may be used by package execnode alone, and knows addresses and names of interfaces, not pods.
package podnet
