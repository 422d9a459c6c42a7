// Package jobstest holds what tests share of job APIs whose pods Muster creates itself: builders of pods in the states
// that a kubelet leaves them in, a check that a Plan is a pure function, and an in-memory cluster. Only tests import
// it; it knows no particular API.
package jobstest
