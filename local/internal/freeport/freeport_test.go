package freeport

import "testing"

func TestPortIsOutsideTheEphemeralRange(t *testing.T) {
	for range 20 {
		address, err := OnLoopback()
		if err != nil {
			t.Fatal(err)
		}
		if !address.Addr().IsLoopback() || address.Port() < first || address.Port() >= end {
			t.Errorf("%s is not on loopback with a port from %d to %d", address, first, end-1)
		}
	}
}
