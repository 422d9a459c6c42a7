package quota

import (
	"fmt"
	"strings"
)

// MarshalText returns flavor/resource. Flavor names contain no slash.
func (fr FlavorResource) MarshalText() ([]byte, error) {
	return []byte(fr.Flavor + "/" + fr.Resource), nil
}

// UnmarshalText reverses MarshalText.
func (fr *FlavorResource) UnmarshalText(text []byte) error {
	flavor, resource, ok := strings.Cut(string(text), "/")
	if !ok {
		return fmt.Errorf("%q is not flavor/resource", text)
	}
	fr.Flavor, fr.Resource = flavor, resource
	return nil
}
