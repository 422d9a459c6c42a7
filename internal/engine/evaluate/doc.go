// Package evaluate works out what can be done for one waiting workload: whether it fits, with which flavors and places,
// who would have to be evicted or shrunk for it, and what it lacks otherwise. It changes no state but counters and
// caches; what it tries in the ledgers and on the nodes it undoes.
package evaluate
