// Package validation tests, against a real API server, that what is wrong with an object is refused with a text that
// says so, and that what is right is taken. Its table of rules becomes docs/reference/validation.md (make generate),
// and tests hold the table, the custom resource definitions and the admission policies together. Nothing imports it.
package validation
