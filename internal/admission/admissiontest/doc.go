// Package admissiontest is what the tests of admission and of its sub-packages share.
package admissiontest
