// Package nodes is where pods can be, and where the pods of workloads are: the map of nodes, and what the engine keeps
// beside it. It finds places for what workloads already hold or have nominated. It reads the workloads, and changes of
// their state only what is about places. It knows no queue and no quota.
package nodes
