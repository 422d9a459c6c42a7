// Package model has what goes into the engine and comes out of it: queues, cohorts and workloads as they were observed
// on the API server, what workloads hold, and the decisions. It only describes: nothing here decides or keeps state.
package model
