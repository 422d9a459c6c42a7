package compile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// fsGroup owns the files of volumes, so that non-root containers can write them.
const fsGroup = 65534

// task is a task that is being compiled.
type task struct {
	*compiler
	name string
	// full is <job>-<task>, the prefix of the names of most of its objects.
	full      string
	spec      *lattice.JobTaskSpec
	resources map[string]*dependency
	// names are the names of the resources, sorted.
	names   []string
	volumes volumes
	pod     corev1.PodSpec
}

// task compiles a task and returns its pod template.
func (c *compiler) task(name string) (*corev1.PodTemplateSpec, error) {
	spec := c.tasks[name]
	t := &task{compiler: c, name: name, full: c.job.Name + "-" + name, spec: &spec}
	t.volumes.task = t
	for _, step := range []func() error{
		t.readResources, t.identity, t.secrets, t.claimVolumes, t.containers, t.gpus, t.rank, t.tracing, t.mesh,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	t.pod.Volumes = t.volumes.list
	labels := labelsOf(t.full)
	if t.training != nil {
		t.training.label(t.job.Name, labels)
	}
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: podAnnotations(t.job.Annotations)},
		Spec:       t.pod}, nil
}

// identity compiles the ServiceAccount and the settings that hold for all containers of a pod.
func (t *task) identity() error {
	t.add(&corev1.ServiceAccount{
		TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:                   t.meta(t.full, t.full),
		AutomountServiceAccountToken: ptr.To(false),
	})
	policy := corev1.FSGroupChangeOnRootMismatch
	t.pod = corev1.PodSpec{
		RestartPolicy:                restartPolicy(t.spec.RestartPolicy),
		ServiceAccountName:           t.full,
		AutomountServiceAccountToken: ptr.To(false),
		HostNetwork:                  ptr.Deref(t.spec.HostNetwork, false),
		ShareProcessNamespace:        t.spec.ShareProcessNamespace,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:        ptr.To(true),
			FSGroup:             ptr.To[int64](fsGroup),
			FSGroupChangePolicy: &policy,
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: spreadBy(t.facts), WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{lattice.NameLabel: t.full}},
		}},
	}
	for name, value := range inOrder(t.spec.Sysctls) {
		t.pod.SecurityContext.Sysctls = append(t.pod.SecurityContext.Sysctls, corev1.Sysctl{Name: name, Value: value})
	}
	return nil
}

func spreadBy(facts *Facts) string { return cmp.Or(facts.SpreadBy, hostnameLabel) }

// dependency is a resource of the task with its params parsed.
type dependency struct {
	name string
	*lattice.ResourceSpec
	volume    volumeParams
	secret    secretParams
	gpu       gpuParams
	endpoints []endpoint
	// service is the service's key, and ports its ports in the graph. A service of another namespace is
	// abroad: templates see only its host.
	service ServiceKey
	ports   []ServicePort
	abroad  bool
	// pulls says that the secret is used to pull images.
	pulls bool
}

// readResources parses and checks all resources, in order of name.
func (t *task) readResources() error {
	specs := t.spec.Workload.Resources
	t.names = slices.Sorted(maps.Keys(specs))
	t.resources = make(map[string]*dependency, len(specs))
	for _, name := range t.names {
		spec := specs[name]
		d := &dependency{name: name, ResourceSpec: &spec}
		if err := t.readResource(d); err != nil {
			return err
		}
		t.resources[name] = d
	}
	return t.pullSecrets()
}

func (t *task) readResource(d *dependency) error {
	var unknown []string
	var err error
	kind := "" // a word about the kind of resource, for errors
	switch d.Type {
	case lattice.VolumeResource:
		d.volume.own = t.full + "-" + d.name
		if unknown, err = read(d.Params, &d.volume); err == nil {
			err = d.volume.check(d.ResourceSpec)
		}
		kind = "invalid volume config: "
	case lattice.SecretResource:
		if d.ID == "" {
			return fmt.Errorf("secret resource '%s': missing 'id' field (remote key for secret store)", d.name)
		}
		if unknown, err = read(d.Params, &d.secret); err == nil {
			err = d.secret.check()
		}
		kind = "invalid secret config: "
	case lattice.GPUResource:
		if unknown, err = read(d.Params, &d.gpu); err == nil {
			err = d.gpu.check()
		}
	case lattice.ExternalServiceResource:
		unknown, err = t.readExternal(d)
	case lattice.ServiceResource:
		err = t.readService(d)
	default:
		t.warn("task '%s': nothing is made of resource '%s', for nobody provides type %s", t.name, d.name, d.Type)
	}
	for _, name := range unknown {
		t.warn("task '%s': params.%s of resource '%s' means nothing to type %s and is ignored", t.name,
			shortened(name), d.name, d.Type)
	}
	t.warnOfUnheeded(d)
	if err != nil {
		return fmt.Errorf("%sresource '%s': %w", kind, d.name, err)
	}
	return nil
}

// warnOfUnheeded warns of fields of a resource that the API has and Muster ignores.
func (t *task) warnOfUnheeded(d *dependency) {
	if d.Class != "" {
		t.warn("task '%s': class of resource '%s' is ignored", t.name, d.name)
	}
	if d.Metadata != nil && len(d.Metadata.Annotations) > 0 {
		t.warn("task '%s': metadata.annotations of resource '%s' are ignored", t.name, d.name)
	}
	if len(d.volume.AllowedConsumers) > 0 {
		t.warn("task '%s': params.allowedConsumers of resource '%s' keep nobody out: whoever may make LatticeJobs in the namespace may use the volume", t.name, d.name)
	}
}

// pullSecrets marks the secrets that are used to pull images.
func (t *task) pullSecrets() error {
	for _, name := range t.spec.ImagePullSecrets {
		d, ok := t.resources[name]
		if !ok {
			return fmt.Errorf("imagePullSecrets references resource '%s' which does not exist", name)
		}
		if d.Type != lattice.SecretResource {
			return fmt.Errorf("imagePullSecrets references resource '%s' but it is type '%s', not 'secret'", name, d.Type)
		}
		d.pulls = true
	}
	return nil
}
