// Package rendezvous serves the agents in training pods: it tells each agent when its round begins, its rank in the
// round, and when the round is over. The decisions are made by the packages round (jobs whose pods carry the label
// muster.dev/rendezvous) and attempt (JobSets that restart in place); this package adds the HTTPS server, the
// authentication of agents, and what the operator's cache knows about pods and jobs.
//
// Training code reports its progress to the same server, by the protocol of Kubeflow's Trainer. What follows from a
// report is decided by the package progress; this package finds the job of the pod, and writes when the job is expected
// to end into its Workload.
//
// The operator's main package adds it to its manager. It knows nothing of queues and quota, and it writes only the
// attempt annotations of JobSet pods, the expected ends of Workloads, and the Secret with its certificate.
package rendezvous
