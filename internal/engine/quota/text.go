package quota

import (
	"fmt"
	"strings"
)

// MarshalText writes flavor/resource: the name of a flavor has no slash.
func (fr FlavorResource) MarshalText() ([]byte, error) {
	return []byte(fr.Flavor + "/" + fr.Resource), nil
}

// UnmarshalText is the inverse of MarshalText.
func (fr *FlavorResource) UnmarshalText(text []byte) error {
	flavor, resource, ok := strings.Cut(string(text), "/")
	if !ok {
		return fmt.Errorf("%q is not flavor/resource", text)
	}
	fr.Flavor, fr.Resource = flavor, resource
	return nil
}
