// Package jobstest is what the tests of job APIs whose pods Muster makes itself share: pods as a kubelet leaves them, a
// check that a Plan is a pure function, and a cluster in memory. Only tests import it; it knows no API.
package jobstest
