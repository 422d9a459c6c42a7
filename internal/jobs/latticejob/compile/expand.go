package compile

import (
	"fmt"
	"strings"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// reference is a place in a text for the value of a secret.
type reference struct {
	secret *dependency
	key    string
}

// text is an expanded text.
type text struct {
	// plain is the whole text, if it has no secrets.
	plain string
	// pieces alternate between literals and references, if it has secrets.
	pieces []textPiece
}

// textPiece is a literal, or the value of a secret.
type textPiece struct {
	literal string
	*reference
}

// secret reports whether the text contains values of secrets.
func (x *text) secret() bool { return len(x.pieces) > 0 }

// single returns the reference of which the whole text consists; nil if the text has more.
func (x *text) single() *reference {
	if len(x.pieces) == 1 {
		return x.pieces[0].reference
	}
	return nil
}

// expandText replaces the placeholders in a text. what names the text in errors.
func (t *task) expandText(what, raw string, mode expansion) (text, error) {
	pieces, err := parse(raw, mode)
	if err != nil {
		return text{}, fmt.Errorf("template error: %s: %w", what, err)
	}
	var (
		out     text
		literal strings.Builder
	)
	for _, p := range pieces {
		switch {
		case !p.isPath():
			literal.WriteString(p.literal)
		case p.path[0] == "secret":
			ref, err := t.secretAt(what, p.path)
			if err != nil {
				return text{}, err
			}
			if literal.Len() > 0 {
				out.pieces = append(out.pieces, textPiece{literal: literal.String()})
				literal.Reset()
			}
			out.pieces = append(out.pieces, textPiece{reference: ref})
		default:
			value, err := t.value(p.path)
			if err == nil {
				err = t.countValue(value)
			}
			if err != nil {
				return text{}, fmt.Errorf("template error: %s: %w", what, err)
			}
			literal.WriteString(value)
		}
	}
	if !out.secret() {
		out.plain = literal.String()
	} else if literal.Len() > 0 {
		out.pieces = append(out.pieces, textPiece{literal: literal.String()})
	}
	return out, nil
}

// maxValues is how many bytes the values of all placeholders of a job may have together, as much as 16 ConfigMaps hold.
// A job of a megabyte could have thousands of placeholders for a value of almost that size, which no memory holds.
const maxValues = 16 << 20

// countValue counts a value that is put into a text of the job, and fails if there are too many.
func (c *compiler) countValue(value string) error {
	if c.values += len(value); c.values > maxValues {
		return fmt.Errorf("the values of placeholders have more than %d bytes together in the job", maxValues)
	}
	return nil
}

// secretAt resolves ${secret.R.K}.
func (t *task) secretAt(what string, path []string) (*reference, error) {
	if len(path) != 3 {
		return nil, fmt.Errorf("template error: %s: %s must be ${secret.RESOURCE.KEY}", what, shortened(written(path)))
	}
	d := t.resource(path[1])
	if d == nil {
		return nil, fmt.Errorf("%s references secret resource '%s' which does not exist", what, path[1])
	}
	if d.Type != lattice.SecretResource {
		return nil, fmt.Errorf("%s references resource '%s' as a secret but it is type '%s'", what, d.name, d.Type)
	}
	if len(d.secret.Keys) == 0 {
		return &reference{secret: d, key: path[2]}, nil
	}
	for _, same := range []func(string) bool{
		func(key string) bool { return key == path[2] },
		func(key string) bool { return sameName(key, path[2]) },
	} {
		for _, key := range d.secret.Keys {
			if same(key) {
				return &reference{secret: d, key: key}, nil
			}
		}
	}
	return nil, fmt.Errorf("%s references key '%s' of secret resource '%s', which is not among its keys", what, path[2], d.name)
}

// resource returns the resource with the name, where - and _ are equal; nil if there is none.
func (t *task) resource(name string) *dependency {
	if d, ok := t.resources[name]; ok {
		return d
	}
	for _, other := range t.names {
		if sameName(other, name) {
			return t.resources[other]
		}
	}
	return nil
}

// value returns the value at the path.
func (t *task) value(path []string) (string, error) {
	unknown := fmt.Errorf("%s is not defined", shortened(written(path)))
	switch {
	case path[0] == "metadata" && len(path) == 2 && path[1] == "name":
		return t.full, nil
	case path[0] == "cluster" && len(path) == 2:
		for _, name := range []string{path[1], strings.ReplaceAll(path[1], "-", "_"), strings.ReplaceAll(path[1], "_", "-")} {
			if value, ok := t.facts.Cluster[name]; ok {
				return value, nil
			}
		}
		return "", fmt.Errorf("%w: the operator's configuration sets it, in latticejob.cluster", unknown)
	case path[0] == "resources" && len(path) == 3:
		d := t.resource(path[1])
		if d == nil {
			return "", fmt.Errorf("%s: there is no resource '%s'", written(path), shortened(path[1]))
		}
		if value, ok := d.outputs()[strings.ReplaceAll(path[2], "-", "_")]; ok {
			return value, nil
		}
		if d.abroad {
			return "", fmt.Errorf("%s: resource '%s' is a service of namespace '%s': of another namespace's the host alone is told", shortened(written(path)), d.name, d.service.Namespace)
		}
		return "", fmt.Errorf("%s: resource '%s' of type %s has no %s", shortened(written(path)), d.name, d.Type, shortened(path[2]))
	}
	return "", unknown
}

// outputs returns the values of the resource that templates may use.
func (d *dependency) outputs() map[string]string {
	switch {
	case d.Type == lattice.VolumeResource:
		return map[string]string{"claim_name": d.claim()}
	case len(d.endpoints) > 0:
		e := d.endpoints[0]
		return map[string]string{"host": e.host, "port": fmt.Sprint(e.port), "url": e.url}
	case d.Type == lattice.ServiceResource && d.calls():
		host := fmt.Sprintf("%s.%s.svc.cluster.local", d.service.Name, d.service.Namespace)
		if d.abroad {
			return map[string]string{"host": host} // users who may create jobs here may not be allowed to read the other namespace
		}
		port := d.servicePort()
		return map[string]string{"host": host, "port": fmt.Sprint(port), "url": fmt.Sprintf("http://%s:%d", host, port)}
	}
	return nil
}
