// Package elastic says how large jobs are that can run at several sizes: who grows into
// room that is free, one replica at a time, and who gives replicas back for somebody
// else, in which order.
//
// It is pure: it knows jobs, their sizes and a speed for each size, and asks whoever
// calls it whether there is room. The engine calls it; it knows neither quota nor nodes.
package elastic
