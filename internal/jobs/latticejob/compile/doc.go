// Package compile compiles a LatticeJob to objects: a batch.volcano.sh Job, and before it the ServiceAccounts,
// ConfigMaps, Secrets, ExternalSecrets, PersistentVolumeClaims, mesh members and TracingPolicies that its pods need.
//
// Compile is a pure function of the job and of facts about the cluster: equal arguments give equal objects, byte for
// byte and in the same order. Its errors are permanent: only another spec, or another cluster, fixes them. It uses no
// client and knows nothing of queues. Secrets that users wrote into the spec by mistake do not appear in its errors.
package compile
