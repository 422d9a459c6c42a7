package compile

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// maxFiles is how many bytes of files one ConfigMap or Secret may hold.
const maxFiles = 1 << 20

// fileSet is one object that holds files of a container.
type fileSet struct {
	volume string
	items  []corev1.KeyToPath
	bytes  int
}

// files compiles and mounts the files of a container.
func (t *task) files(c *corev1.Container, files map[string]lattice.FileMount) error {
	if len(files) == 0 {
		return nil
	}
	texts, binaries := map[string]string{}, map[string][]byte{}
	textSet, binarySet := fileSet{volume: filesVolume(c.Name, "-files")},
		fileSet{volume: filesVolume(c.Name, "-files-bin")}
	keys := map[string]string{}
	for at, f := range inOrder(files) {
		fail := func(err error) error {
			return fmt.Errorf("file compilation error: container '%s': file '%s': %w", c.Name, shortened(at), err)
		}
		if err := checkMountPath(at); err != nil {
			return fail(err)
		}
		key := fileKey(at)
		if other, taken := keys[key]; taken {
			return fail(fmt.Errorf("its key '%s' is that of file '%s' too: give one of them another path", key, other))
		}
		keys[key] = at
		mode, err := modeOf(f.Mode)
		if err != nil {
			return fail(err)
		}
		content, how, err := contentOf(&f)
		if err != nil {
			return fail(err)
		}
		item := corev1.KeyToPath{Key: key, Path: key, Mode: mode}
		if f.BinaryContent != nil {
			binaries[key] = content
			if err = t.countText(len(content)); err == nil {
				err = t.place(c, &binarySet, item, at, len(content))
			}
		} else {
			var x text
			if x, err = t.expandText(fmt.Sprintf("file '%s'", shortened(at)), string(content), how); err != nil {
				return fail(err)
			}
			if x.secret() {
				err = t.secretFile(c, at, item, &x)
			} else {
				texts[key] = x.plain
				err = t.place(c, &textSet, item, at, len(x.plain))
			}
		}
		if err != nil {
			return fail(err)
		}
	}
	return t.fileObjects(c, texts, binaries, &textSet, &binarySet)
}

// filesVolume returns the name of the volume with files of the container. It is hashed if too long, as
// a container's name may already have the maximum length.
func filesVolume(container, suffix string) string {
	if len(container)+len(suffix) > validation.DNS1123LabelMaxLength {
		container = container[:validation.DNS1123LabelMaxLength-len(suffix)-9] + "-" + digest(container)
	}
	return container + suffix
}

// place mounts a file of the set.
func (t *task) place(c *corev1.Container, set *fileSet, item corev1.KeyToPath, at string, size int) error {
	if set.bytes += size; set.bytes > maxFiles {
		return fmt.Errorf("the files of the container have more than %d bytes together: use a volume", maxFiles)
	}
	set.items = append(set.items, item)
	mountFile(c, set.volume, item.Key, at)
	return nil
}

func mountFile(c *corev1.Container, volume, key, at string) {
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: at, SubPath: key, ReadOnly: true})
}

// secretFile compiles a file that contains values of secrets.
func (t *task) secretFile(c *corev1.Container, at string, item corev1.KeyToPath, x *text) error {
	provider, err := storeOf(x)
	if err != nil {
		return fmt.Errorf("it %w", err)
	}
	r := newRendering(provider)
	r.put(item.Key, x)
	if r.bytes > maxFiles {
		return fmt.Errorf("it has more than %d bytes: use a volume", maxFiles)
	}
	name := fmt.Sprintf("%s-%s-file-%s", t.full, c.Name, objectName(item.Key))
	volume := volumeName("file-" + objectName(item.Key))
	if t.volumes.named(volume) || t.made("Secret", name) { // of another container, or of a path that gives the same name
		name, volume = name+"-"+digest(c.Name+at), "file-"+digest(c.Name+at)
	}
	t.render(name, r)
	mountFile(c, volume, item.Key, at)
	return t.volumes.add(volume, corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: name, Items: []corev1.KeyToPath{item}}})
}

// volumeName truncates a name to the length of a volume name.
func volumeName(name string) string {
	return strings.TrimRight(name[:min(len(name), validation.DNS1123LabelMaxLength)], "-")
}

func (t *task) addConfigMap(name string, data map[string]string) {
	t.add(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: t.meta(name, t.full), Data: data,
	})
}

// fileObjects compiles the ConfigMap and the Secret that hold the files.
func (t *task) fileObjects(c *corev1.Container, texts map[string]string, binaries map[string][]byte,
	textSet, binarySet *fileSet) error {
	name := fmt.Sprintf("%s-%s-files", t.full, c.Name)
	if len(texts) > 0 {
		t.addConfigMap(name, texts)
		if err := t.volumes.add(textSet.volume, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: textSet.items}}); err != nil {
			return fmt.Errorf("file compilation error: container '%s': %w", c.Name, err)
		}
	}
	if len(binaries) > 0 {
		t.add(&corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: t.meta(name+"-bin", t.full), Type: corev1.SecretTypeOpaque, Data: binaries,
		})
		if err := t.volumes.add(binarySet.volume, corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: name + "-bin", Items: binarySet.items}}); err != nil {
			return fmt.Errorf("file compilation error: container '%s': %w", c.Name, err)
		}
	}
	return nil
}

// contentOf returns the content of the file before expansion, and how to expand it.
func contentOf(f *lattice.FileMount) ([]byte, expansion, error) {
	asItIs, reversed := ptr.Deref(f.NoExpand, false), ptr.Deref(f.ReverseExpand, false)
	sources := 0
	for _, source := range []*string{f.Content, f.BinaryContent, f.Source} {
		if source != nil {
			sources++
		}
	}
	switch {
	case sources != 1:
		return nil, verbatim, errors.New("it must have one of content, binaryContent and source")
	case asItIs && reversed:
		return nil, verbatim, errors.New("noExpand and reverseExpand exclude each other")
	case f.Source != nil:
		return nil, verbatim, errors.New("source names a file beside the manifest, which is not here: give its content")
	case f.BinaryContent != nil:
		content, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(*f.BinaryContent), ""))
		if err != nil {
			return nil, verbatim, errors.New("binaryContent is not base64") // without quoting the content
		}
		return content, verbatim, nil
	case asItIs:
		return []byte(*f.Content), verbatim, nil
	case reversed:
		return []byte(*f.Content), reverseExpand, nil
	}
	return []byte(*f.Content), expand, nil
}

// modeOf parses three or four octal digits.
func modeOf(text string) (*int32, error) {
	if text == "" {
		return nil, nil
	}
	mode, err := strconv.ParseUint(text, 8, 16)
	switch {
	case err != nil || len(text) < 3 || len(text) > 4:
		return nil, fmt.Errorf("mode must be three or four octal digits, not '%s'", shortened(text))
	case mode > 0o777:
		return nil, fmt.Errorf("mode %s must not have setuid, setgid or sticky bits", text)
	case mode&0o002 != 0:
		return nil, fmt.Errorf("mode %s must not let everybody write", text)
	}
	return ptr.To(int32(mode)), nil
}

// fileKey returns the path without its first slash, with - for characters that a key cannot have.
func fileKey(at string) string {
	key := strings.Map(func(r rune) rune {
		switch {
		case r == '/':
			return '-'
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, strings.TrimPrefix(at, "/"))
	if len(validation.IsConfigMapKey(key)) > 0 {
		return "file-" + digest(at)
	}
	return key
}

// objectName returns the key as a valid name of an object, truncated.
func objectName(key string) string {
	name := plain(key)
	if name = strings.Trim(name[:min(len(name), 100)], "-"); name == "" {
		return digest(key)
	}
	return name
}

// plain returns the text in lower case, with a dash for all but letters and digits.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, text)
}

// digest distinguishes texts that would get the same name.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:8]
}
