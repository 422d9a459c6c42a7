// Package pki creates the keys and certificates of a local cluster.
//
// The authorities and the key that signs service account tokens are kept across starts, so that clients go on trusting
// the cluster; what they sign is created at each start and so does not expire while a cluster is used.
//
// Package controlplane calls it. It knows certificates and files, and nothing of what they are for.
package pki
