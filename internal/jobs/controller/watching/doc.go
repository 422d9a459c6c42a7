// Package watching has what the controllers of all job APIs do with events: they share the watches of kinds that all of
// them watch, reconcile a job once for many events, and keep from one event to the next what would be costly to list.
package watching
