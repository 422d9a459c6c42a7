// Package admissiontest has the builders and assertions that the tests of admission and of its sub-packages share.
package admissiontest
