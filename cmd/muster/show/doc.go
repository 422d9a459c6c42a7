// Package show prints what package view found: tables through the printers of kubectl, a live table on a terminal, and
// an explanation as text. Commands and the demo may call it. It never reads from a cluster and derives nothing.
package show
