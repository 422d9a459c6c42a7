package compile

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
)

// claimPrefix is the name prefix of claims of volumes with an id, which are shared by all jobs that use the id.
const claimPrefix = "vol-"

// creates reports whether the task creates the volume: only then does it have a size.
func (d *dependency) creates() bool { return d.volume.Size != nil }

// claim returns the name of the volume's claim.
func (d *dependency) claim() string {
	if d.ID != "" {
		return claimPrefix + d.ID
	}
	return d.volume.own
}

// madeFor names the volume in its claim. The name of the claim may be that of another volume too: its parts
// are joined with -, which each of them may contain.
func (t *task) madeFor(d *dependency) string {
	if d.ID != "" {
		return "shared/" + d.ID
	}
	return t.job.Name + "/" + t.name + "/" + d.name
}

// claimVolumes compiles the claims of volumes that the task creates. They outlive the job, and so have no owner.
func (t *task) claimVolumes() error {
	for _, name := range t.names {
		d := t.resources[name]
		if d.Type != lattice.VolumeResource || !d.creates() {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			ObjectMeta: metav1.ObjectMeta{Name: d.claim(), Namespace: t.job.Namespace,
				Labels:      map[string]string{lattice.ManagedByLabel: lattice.ManagedBy},
				Annotations: map[string]string{muster.MadeForAnnotation: t.madeFor(d)}},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				StorageClassName: d.volume.StorageClass,
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: d.volume.Size.Quantity}},
			},
		}
		if d.volume.AccessMode != "" {
			claim.Spec.AccessModes[0] = d.volume.AccessMode
		}
		if before, ok := t.claims[claim.Name]; ok {
			if !equality.Semantic.DeepEqual(before.Spec, claim.Spec) {
				return fmt.Errorf("invalid volume config: resource '%s': the volume '%s' is created by another task of the job too, with other params", name, d.ID)
			}
			if d.ID != "" && t.shared[claim.Name] {
				continue
			}
		}
		t.claims[claim.Name], t.shared[claim.Name] = claim, d.ID != ""
		t.add(claim)
	}
	return nil
}

// volumes are the volumes of a task's pods.
type volumes struct {
	task *task
	list []corev1.Volume
	// at maps the name of each volume to its index in list.
	at map[string]int
	// scratch maps mount paths to names of empty volumes.
	scratch map[string]string
}

// add adds the volume to the pods; an existing one of the same name must be equal.
func (v *volumes) add(name string, source corev1.VolumeSource) error {
	volume := corev1.Volume{Name: name, VolumeSource: source}
	if i, there := v.at[volume.Name]; there {
		if !equality.Semantic.DeepEqual(v.list[i], volume) {
			return fmt.Errorf("two volumes of different kinds would be named '%s': give one of them another name", volume.Name)
		}
		return nil
	}
	if len(validation.IsDNS1123Label(volume.Name)) > 0 {
		return fmt.Errorf("'%s' cannot be the name of a volume", shortened(volume.Name))
	}
	if v.at == nil {
		v.at = map[string]int{}
	}
	v.at[volume.Name] = len(v.list)
	v.list = append(v.list, volume)
	return nil
}

// named reports whether a volume has the name.
func (v *volumes) named(name string) bool {
	_, there := v.at[name]
	return there
}

// mount mounts the volumes of a container.
func (t *task) mount(c *corev1.Container, mounts map[string]lattice.VolumeMount) error {
	for at, m := range inOrder(mounts) {
		if err := checkMountPath(at); err != nil {
			return fmt.Errorf("invalid volume config: container '%s': %w", c.Name, err)
		}
		if err := checkSubPath(m.Path); err != nil {
			return fmt.Errorf("invalid volume config: container '%s': volume at '%s': %w", c.Name, at, err)
		}
		name, err := t.volumeFor(at, &m)
		if err != nil {
			return fmt.Errorf("invalid volume config: container '%s': volume at '%s': %w", c.Name, at, err)
		}
		c.VolumeMounts = append(c.VolumeMounts,
			corev1.VolumeMount{Name: name, MountPath: at, SubPath: m.Path, ReadOnly: ptr.Deref(m.ReadOnly, false)})
	}
	return nil
}

// volumeFor returns the name of the volume to mount at the path.
func (t *task) volumeFor(at string, m *lattice.VolumeMount) (string, error) {
	if m.Source == "" {
		return t.volumes.empty(at, m)
	}
	inner, ok := strings.CutPrefix(m.Source, "${resources.")
	name, closed := strings.CutSuffix(inner, "}")
	if !ok || !closed || !isName(name) {
		return "", fmt.Errorf("source must be ${resources.NAME}, not '%s'", shortened(m.Source))
	}
	d := t.resource(name)
	if d == nil {
		return "", fmt.Errorf("source names resource '%s' which does not exist", name)
	}
	if d.Type != lattice.VolumeResource {
		return "", fmt.Errorf("source names resource '%s' but it is type '%s', not 'volume'", d.name, d.Type)
	}
	if m.Medium != "" || m.SizeLimit != nil {
		return "", fmt.Errorf("medium and sizeLimit are for volumes without a source")
	}
	return d.name, t.volumes.add(d.name, corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: d.claim()}})
}

// empty returns the name of an empty volume for the path; containers that mount one at the same path share it.
func (v *volumes) empty(at string, m *lattice.VolumeMount) (string, error) {
	name, ok := v.scratch[at]
	if !ok {
		name = emptyName(at)
		if v.named(name) {
			name = fmt.Sprintf("%s-%s", name[:min(len(name), 54)], digest(at))
		}
		if v.scratch == nil {
			v.scratch = map[string]string{}
		}
		v.scratch[at] = name
	}
	err := v.add(name, corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMedium(m.Medium), SizeLimit: m.SizeLimit}})
	if err != nil {
		return "", fmt.Errorf("containers share an empty volume there: its medium and sizeLimit must be the same in all of them")
	}
	return name, nil
}

// emptyName returns emptydir-<path>, as a valid name.
func emptyName(at string) string {
	name := "emptydir-" + plain(strings.Trim(at, "/"))
	return strings.TrimRight(name[:min(len(name), validation.DNS1123LabelMaxLength)], "-")
}

// checkMountPath rejects paths that are not in their canonical form.
func checkMountPath(at string) error {
	switch {
	case !path.IsAbs(at):
		return fmt.Errorf("the path '%s' must begin with /", shortened(at))
	case path.Clean(at) != at || at == "/":
		return fmt.Errorf("the path '%s' must be a plain one, without . and .. and empty parts", shortened(at))
	case strings.ContainsAny(at, ":\x00\n"):
		return fmt.Errorf("the path '%s' must not contain : or control characters", shortened(at))
	}
	return nil
}

func checkSubPath(p string) error {
	if p != "" && (path.IsAbs(p) || path.Clean(p) != p || p == ".." || strings.HasPrefix(p, "../")) {
		return fmt.Errorf("the path '%s' must lie within the volume", shortened(p))
	}
	return nil
}
