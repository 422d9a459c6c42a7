package show

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

func TestTheBestDomainIsToldWithWhatItIsShortOf(t *testing.T) {
	rack := place.Domain{Level: "example.com/rack", Values: []string{"b1", "r3"}, Fits: 3, Lacks: 1, Resource: "nvidia.com/gpu"}
	if got, want := bestOf(&rack, 4), "example.com/rack b1/r3: 3 of 4 pods fit, gpu is short for 1 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	rack.Resource = "" // such as a part that must be alone there
	if got, want := bestOf(&rack, 4), "example.com/rack b1/r3: 3 of 4 pods fit"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
