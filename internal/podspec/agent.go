package podspec

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/muster"
)

// Agent is what it takes to have muster-agent run round the commands of pods. The zero
// value says that this operator serves no agents.
type Agent struct {
	// Image has muster-agent in its PATH: the operator's own.
	Image string
	// Server is the host and port at which pods reach the operator's rendezvous, and CA the
	// certificate that they are to trust, as PEM.
	Server, CA string
}

// Round says of a pod in which rounds its agent takes part.
type Round struct {
	// ID of the job's rounds: its UID. Empty for a JobSet that restarts in place, whose pods
	// are known by its own labels.
	ID string
	// Min and Max are how many pods may be in a round.
	Min, Max int32
	// Index of the pod in its job, or below 0 if its labels say it, as with Jobs.
	Index int32
	// Framework is what the job says that its program uses, such as pytorch.
	Framework string
	// Container whose command is meant, empty for the first.
	Container string
	// MaxRestarts is how often the command may fail for its own fault, nil for the agent's
	// default; below 0 for any number.
	MaxRestarts *int32
}

// Sizes are how many pods may be in a round, as pods are told: 2:4.
func (r Round) Sizes() string { return fmt.Sprintf("%d:%d", r.Min, r.Max) }

const (
	agentName  = "muster-agent"
	agentDir   = "/var/run/muster"
	tokenDir   = "/var/run/secrets/muster.dev"
	agentToken = "muster-token"
	// audience is protocol.Audience of the rendezvous.
	audience     = "rendezvous.muster.dev"
	tokenSeconds = 3600
	// defaultGraceSeconds is what the API server makes of no terminationGracePeriodSeconds.
	defaultGraceSeconds = 30
)

// errNoCommand is of containers that leave it to their image what they run.
var errNoCommand = errors.New("an agent can be put only round an explicit command: set command, to what the image would run")

// errNoAgent is of an operator that serves no agents.
var errAgentsDisabled = errors.New("the operator serves no agents: it was started without --rendezvous-address, or its log says why")

// Serves reports whether there is an agent to add.
func (a Agent) Enabled() bool { return a.Server != "" }

// Inject returns the template with the agent round the command of its container. What is
// there stays: arguments, the user's own variables, names that are the agent's are refused.
func (a Agent) Inject(template corev1.PodTemplateSpec, round Round) (corev1.PodTemplateSpec, error) {
	if !a.Enabled() {
		return template, errAgentsDisabled
	}
	out := *template.DeepCopy()
	spec := &out.Spec
	at := 0
	if round.Container != "" {
		at = slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == round.Container })
	}
	if at < 0 || at >= len(spec.Containers) {
		return template, fmt.Errorf("there is no container %q to put an agent in", round.Container)
	}
	container := &spec.Containers[at]
	if len(container.Command) == 0 {
		return template, fmt.Errorf("container %s: %w", container.Name, errNoCommand)
	}
	if taken := takenName(spec); taken != "" {
		return template, fmt.Errorf("the name %s is the agent's: rename the container or volume that has it", taken)
	}
	spec.Volumes = append(spec.Volumes, agentVolumes()...)
	installer := corev1.Container{
		Name: agentName, Image: a.Image, Command: []string{agentName, "install", agentDir},
		VolumeMounts:    []corev1.VolumeMount{{Name: agentName, MountPath: agentDir}},
		SecurityContext: container.SecurityContext.DeepCopy(),
		// As much as the container that follows, so that the pod needs no more than it did.
		Resources: installerResources(container),
	}
	spec.InitContainers = slices.Insert(spec.InitContainers, 0, installer)
	container.Command = append([]string{agentDir + "/" + agentName, "run", "--"}, container.Command...)
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: agentName, MountPath: agentDir},
		corev1.VolumeMount{Name: agentToken, MountPath: tokenDir, ReadOnly: true})
	container.Env = append(withoutNames(a.variables(round, spec), container.Env), container.Env...)
	a.label(&out, round)
	return out, nil
}

func takenName(spec *corev1.PodSpec) string {
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if c.Name == agentName {
			return c.Name
		}
	}
	for _, v := range spec.Volumes {
		if v.Name == agentName || v.Name == agentToken {
			return v.Name
		}
	}
	return ""
}

func agentVolumes() []corev1.Volume {
	return []corev1.Volume{
		{Name: agentName, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: agentToken, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
			ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: ptr.To[int64](tokenSeconds), Path: "token"},
		}}}}},
	}
}

// installerResources are those of CPU and memory alone: devices need nobody before the
// command runs, and where a quota asks for limits the installer has them too.
func installerResources(c *corev1.Container) corev1.ResourceRequirements {
	pick := func(list corev1.ResourceList) corev1.ResourceList {
		var out corev1.ResourceList
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if amount, there := list[name]; there {
				if out == nil {
					out = corev1.ResourceList{}
				}
				out[name] = amount
			}
		}
		return out
	}
	return corev1.ResourceRequirements{Requests: pick(c.Resources.Requests), Limits: pick(c.Resources.Limits)}
}

// without are those variables whose names the user has not taken.
func withoutNames(added, existing []corev1.EnvVar) []corev1.EnvVar {
	return slices.DeleteFunc(added, func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(existing, func(u corev1.EnvVar) bool { return u.Name == v.Name })
	})
}

// variables come before the container's own, which may refer to them.
func (a Agent) variables(round Round, spec *corev1.PodSpec) []corev1.EnvVar {
	grace := int64(defaultGraceSeconds)
	if spec.TerminationGracePeriodSeconds != nil {
		grace = *spec.TerminationGracePeriodSeconds
	}
	out := []corev1.EnvVar{
		{Name: "MUSTER_RENDEZVOUS", Value: a.Server},
		{Name: "MUSTER_RENDEZVOUS_CA", Value: a.CA},
		{Name: "MUSTER_RENDEZVOUS_TOKEN", Value: tokenDir + "/token"},
		{Name: "MUSTER_POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}},
		{Name: "MUSTER_CHECKPOINT_GRACE", Value: strconv.FormatInt(grace, 10)},
	}
	if round.MaxRestarts != nil {
		out = append(out, corev1.EnvVar{Name: "LATTICE_MAX_RESTARTS", Value: strconv.Itoa(int(*round.MaxRestarts))})
	}
	if round.ID == "" {
		return out
	}
	host, port, err := net.SplitHostPort(a.Server)
	if err != nil {
		host, port = a.Server, ""
	}
	autopatch := ""
	if round.Framework == "pytorch" {
		autopatch = "torch"
	}
	return append(out, []corev1.EnvVar{
		{Name: "LATTICE_NNODES", Value: round.Sizes()},
		{Name: "LATTICE_RDZV_ID", Value: round.ID},
		{Name: "LATTICE_RDZV_BACKEND", Value: "muster"},
		{Name: "LATTICE_RDZV_CLIENT_SERVICE_HOST", Value: host},
		{Name: "LATTICE_RDZV_CLIENT_SERVICE_PORT", Value: port},
		{Name: "LATTICE_FRAMEWORK", Value: round.Framework},
		{Name: "LATTICE_AUTOPATCH", Value: autopatch},
		{Name: "LATTICE_CHECKPOINT_TYPE", Value: "local"},
		{Name: "LATTICE_CHECKPOINT_CONFIG", Value: "root=/tmp/" + round.ID},
	}...)
}

// mark has the operator know the pod by its labels.
func (a Agent) label(template *corev1.PodTemplateSpec, round Round) {
	if round.ID == "" {
		return
	}
	template.Labels = merged(template.Labels, map[string]string{muster.RendezvousLabel: round.ID})
	annotations := map[string]string{muster.RendezvousSizeAnnotation: round.Sizes()}
	if round.Index >= 0 {
		annotations[muster.RendezvousIndexAnnotation] = strconv.Itoa(int(round.Index))
	}
	template.Annotations = merged(template.Annotations, annotations)
}
