// Package show prints what package view found: tables through kubectl's printers, a live table on a terminal, and an
// explanation as text. Commands and the demo call it. It never reads from a cluster and derives nothing.
package show
