package compile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/internal/podspec"
)

// volumeParams are the params of a volume.
type volumeParams struct {
	Size             *storage                          `json:"size"`
	StorageClass     *string                           `json:"storageClass"`
	AccessMode       corev1.PersistentVolumeAccessMode `json:"accessMode"`
	AllowedConsumers []string                          `json:"allowedConsumers"`

	// own is the name of the claim of a volume without an id.
	own string
}

// storage is an amount of storage.
type storage struct{ resource.Quantity }

// UnmarshalJSON returns errors that name the param.
func (s *storage) UnmarshalJSON(text []byte) error {
	amount, ok := podspec.Parse(strings.Trim(string(text), `"`))
	if !ok {
		return fmt.Errorf("size must be an amount of storage such as 500Gi, not %s", shortened(string(text)))
	}
	s.Quantity = amount
	return nil
}

// secretParams are the params of a secret.
type secretParams struct {
	Provider        string            `json:"provider"`
	Keys            []string          `json:"keys"`
	RefreshInterval string            `json:"refreshInterval"`
	SecretType      corev1.SecretType `json:"secretType"`

	// listed are the keys, and alike maps each key with its - replaced by _ to the first one that gives it.
	listed map[string]bool
	alike  map[string]string
}

// maxSecretKeys is how many keys a secret may list.
const maxSecretKeys = 256

// key returns the listed key with the name, or else the first one with the name where - and _ are equal.
func (s *secretParams) key(name string) (key string, listed bool) {
	if s.listed == nil {
		s.listed, s.alike = map[string]bool{}, map[string]string{}
		for _, key := range s.Keys {
			s.listed[key] = true
			if plain := underscored(key); s.alike[plain] == "" {
				s.alike[plain] = key
			}
		}
	}
	if s.listed[name] {
		return name, true
	}
	key, listed = s.alike[underscored(name)]
	return key, listed
}

// gpuParams are the params of GPUs.
type gpuParams struct {
	Count       int64           `json:"count"`
	Memory      json.RawMessage `json:"memory"`
	Compute     *int64          `json:"compute"`
	Model       string          `json:"model"`
	Tolerations *bool           `json:"tolerations"`

	// mib is the memory in MiB, 0 if it is not set.
	mib int64
}

// externalParams are the params of an external service.
type externalParams struct {
	Endpoints  map[string]string `json:"endpoints"`
	Resolution string            `json:"resolution"`
}

// read decodes params and returns the names that the type does not know. Names are case-sensitive, as
// they are for the admission policy that checks whether the user may create what the params ask for.
func read[P any](raw *runtime.RawExtension, into *P) (unknown []string, err error) {
	if raw == nil || len(raw.Raw) == 0 || bytes.Equal(raw.Raw, []byte("null")) {
		return nil, nil
	}
	if err := utiljson.Unmarshal(raw.Raw, into); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return nil, fmt.Errorf("params.%s cannot be a %s", wrong.Field, wrong.Value)
		}
		return nil, fmt.Errorf("params: %s", shortened(err.Error()))
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw.Raw, &given); err != nil {
		return nil, errors.New("params must be a map")
	}
	known := reflect.TypeFor[P]()
	for i := range known.NumField() {
		delete(given, known.Field(i).Tag.Get("json")) // our own fields have no tag
	}
	return slices.Sorted(maps.Keys(given)), nil
}

func (v *volumeParams) check(r *lattice.ResourceSpec) error {
	switch {
	case v.Size == nil && r.ID == "":
		return errors.New("a volume needs params.size, to be created, or the id of one that is there")
	case v.Size != nil && v.Size.Sign() <= 0:
		return fmt.Errorf("params.size must be more than 0, not %s", &v.Size.Quantity)
	case r.ID != "" && (len(validation.IsDNS1123Label(r.ID)) > 0 || len(r.ID) > 50):
		return fmt.Errorf("the id of a volume must be a DNS label of at most 50 characters, not %q", shortened(r.ID))
	}
	switch v.AccessMode {
	case "", corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany:
		return nil
	}
	return fmt.Errorf("params.accessMode must be ReadWriteOnce, ReadWriteMany or ReadOnlyMany, not %q",
		shortened(string(v.AccessMode)))
}

// interval is a duration of hours, minutes and seconds, such as 1h30m.
var interval = regexp.MustCompile(`^([0-9]+h)?([0-9]+m)?([0-9]+s)?$`)

// secretKey matches valid keys of a secret.
var secretKey = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)

var secretTypes = []corev1.SecretType{corev1.SecretTypeOpaque, corev1.SecretTypeTLS, corev1.SecretTypeDockerConfigJson,
	corev1.SecretTypeDockercfg, corev1.SecretTypeBasicAuth, corev1.SecretTypeSSHAuth, corev1.SecretTypeServiceAccountToken,
	corev1.SecretTypeBootstrapToken}

func (s *secretParams) check() error {
	switch {
	case s.Provider == "":
		return errors.New("params.provider must name the ClusterSecretStore that has the secret")
	case len(validation.IsDNS1123Subdomain(s.Provider)) > 0:
		return fmt.Errorf("params.provider must be the name of a ClusterSecretStore, not %q", shortened(s.Provider))
	case s.RefreshInterval != "" && !interval.MatchString(s.RefreshInterval):
		return fmt.Errorf("params.refreshInterval must be hours, minutes and seconds such as 1h30m, not %q",
			shortened(s.RefreshInterval))
	case s.SecretType != "" && !slices.Contains(secretTypes, s.SecretType):
		return fmt.Errorf("params.secretType %q is not a type of secret that can be made", shortened(string(s.SecretType)))
	case len(s.Keys) > maxSecretKeys:
		return fmt.Errorf("params.keys has %d keys, more than %d", len(s.Keys), maxSecretKeys)
	}
	for _, key := range s.Keys {
		if !secretKey.MatchString(key) {
			return fmt.Errorf("params.keys: %q cannot be the key of a secret", shortened(key))
		}
	}
	return nil
}

// maxGPUMemory is 1 PiB, in MiB, far above the memory of any GPU.
const maxGPUMemory = 1 << 30

func (g *gpuParams) check() error {
	switch {
	case g.Count <= 0:
		return errors.New("params.count must be the number of GPUs, 1 or more")
	case g.Count > 1<<16:
		return fmt.Errorf("params.count cannot be %d", g.Count)
	case g.Compute != nil && (*g.Compute < 1 || *g.Compute > 100):
		return fmt.Errorf("params.compute must be a percentage from 1 to 100, not %d", *g.Compute)
	}
	if len(g.Memory) == 0 || bytes.Equal(g.Memory, []byte("null")) {
		return nil
	}
	var err error
	g.mib, err = mebibytes(strings.Trim(string(g.Memory), `"`))
	return err
}

var gpuMemory = regexp.MustCompile(`^([0-9]{1,18})(Gi|Mi)?$`)

// mebibytes parses 80Gi, 8192Mi, or a bare number of MiB.
func mebibytes(text string) (int64, error) {
	parts := gpuMemory.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("params.memory must be such as 80Gi, 8192Mi or a number of MiB, not %q", shortened(text))
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || n == 0 || n > maxGPUMemory || parts[2] == "Gi" && n > maxGPUMemory>>10 {
		return 0, fmt.Errorf("params.memory must be more than 0 and at most 1Pi, not %q", shortened(text))
	}
	if parts[2] == "Gi" {
		n <<= 10
	}
	return n, nil
}

// endpoint is the address of an external service.
type endpoint struct {
	name, host, url string
	port            int32
}

// endpoints returns the endpoints in order of name, the one named default first.
func (ep *externalParams) endpoints() ([]endpoint, error) {
	if len(ep.Endpoints) == 0 {
		return nil, errors.New("params.endpoints must name at least one URL")
	}
	var out []endpoint
	for name, url := range inOrder(ep.Endpoints) {
		e, err := parseEndpoint(url)
		if err != nil {
			return nil, fmt.Errorf("params.endpoints.%s must be a URL such as https://api.example.com:443: %w",
				shortened(name), err)
		}
		e.name = name
		if name == "default" {
			out = slices.Insert(out, 0, e)
		} else {
			out = append(out, e)
		}
	}
	return out, nil
}

// wellKnownPorts are the default ports of URL schemes.
var wellKnownPorts = map[string]int32{"http": 80, "https": 443, "postgres": 5432, "postgresql": 5432, "mysql": 3306,
	"redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671, "mongodb": 27017, "nats": 4222, "kafka": 9092, "ws": 80,
	"wss": 443, "grpc": 443, "ftp": 21, "ssh": 22}

// parseEndpoint parses a URL. Its errors do not quote the URL, which may hold a password.
func parseEndpoint(text string) (endpoint, error) {
	u, err := url.Parse(text)
	if err != nil {
		return endpoint{}, errors.New("it cannot be read")
	}
	e := endpoint{host: u.Hostname(), url: text, port: wellKnownPorts[u.Scheme]}
	if u.Scheme == "" || e.host == "" {
		return endpoint{}, errors.New("it needs a scheme and a host")
	}
	if text := u.Port(); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return endpoint{}, errors.New("its port is no number from 1 to 65535")
		}
		e.port = int32(port)
	}
	if e.port == 0 {
		return endpoint{}, fmt.Errorf("it needs a port, for that of scheme %s is not known", shortened(u.Scheme))
	}
	return e, nil
}
