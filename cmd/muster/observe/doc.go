// Package observe reads what the API server says of jobs and queues, once or as it changes, into a view.Seen. Commands
// and the demo may call it. It writes nothing and draws no conclusions.
package observe
