// Package view turns what the API server said into values that answer the first question of every user: is it running,
// and if not, why and since when? Its functions are pure: objects and a time go in, jobs, queues and explanations come
// out, the same ones for the same input. It never reads from a cluster and never prints.
//
// Job, Queue and Explanation are also what `-o json` gives; docs/cli.md documents them and their fields are stable.
package view
