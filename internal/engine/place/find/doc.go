// Package find finds places for gangs in a place.Map: nodes for all pods of a workload at once, or for none.
//
// A Finder reads the Map, and changes it only while a search is open: the search charges the places that it has found
// so far, so that the next pod set does not get them too, and takes all charges back at its end. A search asks tallies
// how many pods fit where, measures which domains can hold a pod set, and spreads the pods over one of them. Where that
// fails it tries other orders of the pod sets, and at last all combinations.
//
// The package is pure: it uses no client and no clock, and equal maps give equal answers.
package find
