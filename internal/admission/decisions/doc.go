// Package decisions writes what the engine has decided into the status of Workloads: admissions, changes of places and
// of sizes, and evictions. Each decision is checked once more against the cache before its write, is one conditional
// write, and is reported back to the engine: written, refused, or overtaken by another change.
//
// The package also keeps the budget of writes that only inform users, and records decisions as events on jobs and in
// the log.
package decisions
