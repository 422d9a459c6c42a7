// Package compile turns a LatticeJob into the objects that it stands for: a
// batch.volcano.sh Job, and before it the ServiceAccounts, ConfigMaps, Secrets,
// ExternalSecrets, PersistentVolumeClaims, mesh members and TracingPolicies that its
// pods need.
//
// Compile is a pure function of the job and of facts about the cluster: equal
// arguments give equal objects, byte for byte and in the same order. Its errors are
// for good: only another spec, or another cluster, mends them. It takes no client and
// knows nothing of queues. Texts of secrets that people wrote by mistake are kept out
// of its errors.
package compile
