// Package probe finds out what the cluster can do, once, at the start of the operator: whether it schedules gangs, and
// which names it takes for Services. Versions do not tell, as feature gates decide; dry runs do.
package probe
