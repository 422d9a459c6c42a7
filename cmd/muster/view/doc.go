// Package view derives, from what was read from the API server, values that answer a user's first question about a job:
// is it running, and if not, why and since when? Its functions are pure: objects and a time go in; jobs, queues and
// explanations come out. Package command calls it. It never reads from a cluster and never prints.
//
// Job, Queue and Explanation are also the output of `-o json`; docs/reference/cli.md documents them, and their fields
// are stable.
package view
