// Package pki makes the keys and certificates of a local cluster.
//
// The authorities and the key that signs service account tokens are made once
// and kept, so that what trusted a cluster goes on trusting it when it starts
// again; everything that they sign is made anew at each start and so never
// runs out while a cluster is used.
//
// Called by controlplane. It knows certificates and files, nothing of what
// they are for.
package pki
