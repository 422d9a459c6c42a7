// Package find finds places for gangs in a place.Map: nodes for all pods of a workload at once, or for none.
//
// A Finder reads the Map, and changes it only while a search is open: the search charges the places that it has found
// so far, so that the next pod set does not get them too, and takes all charges back at its end. A search asks tallies
// how many pods fit where, measures which domains can hold a pod set, and spreads the pods over one of them. Where that
// fails it tries other orders of the pod sets, and at last all combinations.
//
//	find.go, finder.go            what callers ask: Find, Fits, EverFits; how asks are opened as wants
//	orders.go, exhaust.go         in which order the pod sets are placed, and at last all combinations
//	group.go, place_group.go      in which domain: narrow ones first, so that wide ones stay whole. A required level
//	                              bounds how wide the domain may be (widest); a preferred level does not
//	tally.go, measure.go          how many pods and parts fit in each domain
//	spread.go                     which nodes of the domain get the pods
//	bind.go, bound*.go            bounds between pods: affinity, and spread constraints
//	repair*.go, scattered.go      new places for pods whose nodes are lost
//	explain.go, diagnose.go, shortfall.go   why there are no places
//	easier.go                     which smaller or wider request would fit
//
// The package is pure: it uses no client and no clock, and equal maps give equal answers.
package find
