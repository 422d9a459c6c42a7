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
func (t *text) secret() bool { return len(t.pieces) > 0 }

// single returns the reference of which the whole text consists; nil if the text has more.
func (t *text) single() *reference {
	if len(t.pieces) == 1 {
		return t.pieces[0].reference
	}
	return nil
}

// expandText replaces the placeholders in a text. what names the text in errors.
func (t *task) expandText(what, raw string, mode expansion) (text, error) {
	fail := func(err error) (text, error) { return text{}, fmt.Errorf("template error: %s: %w", what, err) }
	pieces, err := parse(raw, mode)
	if err == nil {
		err = t.countText(len(raw))
	}
	if err != nil {
		return fail(err)
	}
	if len(pieces) == 1 && !pieces[0].isPath() {
		return text{plain: pieces[0].literal}, nil // shared with the spec: there may be many of these texts
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
			if err := t.countValue(len(written(p.path))); err != nil { // its template has about this length
				return fail(err)
			}
			if literal.Len() > 0 {
				out.pieces = append(out.pieces, textPiece{literal: literal.String()})
				literal.Reset()
			}
			out.pieces = append(out.pieces, textPiece{reference: ref})
		default:
			value, err := t.value(p.path)
			if err == nil {
				err = t.countValue(len(value))
			}
			if err != nil {
				return fail(err)
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

const (
	// maxValues is how many bytes the values of all placeholders of a job may have together, as much as 16 ConfigMaps
	// hold. A job of a megabyte could have thousands of placeholders for a value of almost that size, which no memory
	// holds.
	maxValues = 16 << 20
	// minValue is how many bytes a value counts at least. Placeholders in the defaults are looked up for each task, which
	// takes longer than to copy short values.
	minValue = 64
)

// countValue counts the bytes of a value that is put into a text of the job, and fails if there are too many.
func (c *compiler) countValue(bytes int) error {
	if c.values += max(bytes, minValue); c.values > maxValues {
		return fmt.Errorf("the values of placeholders have more than %d bytes together in the job, where each counts at least %d",
			maxValues, minValue)
	}
	return nil
}

// maxTexts is how many bytes the variables and files of a job may have together, as they are written, as much as 64
// ConfigMaps hold. Variables and files of the defaults are in each task, and the variables of a training are in each
// container: a job of a megabyte could have thousands of full ConfigMaps.
const maxTexts = 64 << 20

// countText counts the bytes of a variable or file of a container, and fails if there are too many.
func (c *compiler) countText(bytes int) error {
	if c.texts += bytes; c.texts > maxTexts {
		return fmt.Errorf("the variables and files of all containers have more than %d bytes together in the job: use a volume", maxTexts)
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
	if key, listed := d.secret.key(path[2]); listed {
		return &reference{secret: d, key: key}, nil
	}
	return nil, fmt.Errorf("%s references key '%s' of secret resource '%s', which is not among its keys",
		what, path[2], d.name)
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
			return "", fmt.Errorf("%s: resource '%s' is a service of namespace '%s': of another namespace's the host alone is told",
				shortened(written(path)), d.name, d.service.Namespace)
		}
		return "", fmt.Errorf("%s: resource '%s' of type %s has no %s", shortened(written(path)), d.name, d.Type,
			shortened(path[2]))
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
			// users who may create jobs here may not be allowed to read the namespace of the service
			return map[string]string{"host": host}
		}
		port := d.servicePort()
		return map[string]string{"host": host, "port": fmt.Sprint(port), "url": fmt.Sprintf("http://%s:%d", host, port)}
	}
	return nil
}
