// Package scenario has the tests that cross all rooms: the operator as users run
// it, on the embedded control plane with simulated machines, told as stories.
package scenario
