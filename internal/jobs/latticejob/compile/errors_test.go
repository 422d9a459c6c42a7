package compile

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// jobOf is a job j of one task t, whose container main has an image if it is not given.
func jobOf(t testing.TB, task string) *lattice.LatticeJob {
	t.Helper()
	job := &lattice.LatticeJob{}
	job.Name, job.Namespace, job.UID = "j", "ns", "u"
	spec := lattice.JobTaskSpec{}
	if err := yaml.UnmarshalStrict([]byte(task), &spec); err != nil {
		t.Fatalf("%s: %v", task, err)
	}
	if spec.Workload.Containers == nil {
		spec.Workload.Containers =
			map[string]lattice.ContainerSpec{"main": {SidecarContainer: lattice.SidecarContainer{Image: "i:1"}}}
	}
	job.Spec.Tasks = map[string]lattice.JobTaskSpec{"t": spec}
	return job
}

const inTask = "compilation failed for task 't': "

// Texts that tasks in the tests below are made of.
func container(fields string) string {
	return "workload: {containers: {main: {image: 'i:1', " + fields + "}}}"
}

func dependent(fields, resources string) string {
	return "workload: {containers: {main: {image: 'i:1', " + fields + "}}, resources: {" + resources + "}}"
}

func needing(resource string) string {
	return "workload: {containers: {main: {image: 'i:1'}}, resources: {r: {" + resource + "}}}"
}

const secrets = "s: {type: secret, id: x, params: {provider: p, keys: [k]}}, other: {type: secret, id: x, params: {provider: q}}, v: {type: volume, id: v}"

func TestErrorsOfContainers(t *testing.T) {
	refused(t, Facts{}, map[string]string{
		"workload: {containers: {main: {image: .}}}":        "invalid container 'main': its image is to be put in before it is applied: neither config.image.main nor config.image is known here",
		"workload: {containers: {main: {image: 'a ${b}'}}}": "invalid container 'main': image must be the name of an image, without spaces and characters of a shell",
		"workload: {containers: {Main: {image: i}}}":        "invalid container 'Main': its name must be a DNS label",

		container("command: [sh]"):     "invalid container 'main': command[0] must be an absolute path, not 'sh'",
		container("livenessProbe: {}"): "invalid container 'main': livenessProbe must have one of httpGet and exec",
		container("variables: {A: " + strings.Repeat("x", 600_000) + ", B: " + strings.Repeat("x", 600_000) +
			"}"): "invalid container 'main': its variables have more than 1048576 bytes together: use files or a volume",
		dependent("variables: {A: '${secret.s.k} "+strings.Repeat("x", 600_000)+"', B: '${secret.s.k} "+
			strings.Repeat("x", 600_000)+"'}",
			secrets): "invalid container 'main': its variables have more than 1048576 bytes together: use files or a volume",
		container("variables: {'a b': x}"):                        "invalid container 'main': 'a b' cannot be the name of a variable",
		container("files: {/a: {content: x}}, volumes: {/a: {}}"): "invalid container 'main': '/a' is a file and a volume",
		"sidecars: {main: {image: i}}\n" +
			container("command: [/c]"): "invalid container 'main': a sidecar has the name of a container",
		"sidecars: {s: {image: i, init: true}}":                     "invalid container 's': an init sidecar needs a command",
		container("files: {/a: {content: x}, /a/b: {content: x}}"):  "invalid container 'main': '/a' is a file, and cannot hold '/a/b'",
		container("files: {/a: {content: x}}, volumes: {/a/b: {}}"): "invalid container 'main': '/a' is a file, and cannot hold '/a/b'",
		"sidecars: {s: {image: i, variables: {'a=b': x}}}":          "invalid container 's': 'a=b' cannot be the name of a variable",
		dependent("envFrom: [nope]",
			secrets): "container 'main' env_from references 'nope' which is not a type: secret resource",
		dependent("envFrom: [v]",
			secrets): "container 'main' env_from references 'v' which is not a type: secret resource",
		"imagePullSecrets: [nope]": "imagePullSecrets references resource 'nope' which does not exist",
		"imagePullSecrets: [v]\n" + dependent("command: [/c]",
			secrets): "imagePullSecrets references resource 'v' but it is type 'volume', not 'secret'",
	})
}

func TestErrorsOfTemplates(t *testing.T) {
	variable := func(text string) string { return dependent("variables: {X: '"+text+"'}", secrets) }
	refused(t, everywhere(), map[string]string{
		variable("${resources.nope.host}"):    "template error: variable 'X': ${resources.nope.host}: there is no resource 'nope'",
		variable("${resources.v.host}"):       "template error: variable 'X': ${resources.v.host}: resource 'v' of type volume has no host",
		variable("${resources.s.host}"):       "template error: variable 'X': ${resources.s.host}: resource 's' of type secret has no host",
		variable("${metadata.annotations.a}"): "template error: variable 'X': ${metadata.annotations.a} is not defined",
		variable("${env.HOME}"):               "template error: variable 'X': ${env.HOME} is not defined",
		variable("${cluster.zone}"):           "template error: variable 'X': ${cluster.zone} is not defined: the operator's configuration sets it, in latticejob.cluster",

		variable("${unclosed"): "template error: variable 'X': a placeholder that begins with ${ has no closing }: write $${ for the characters themselves",
		variable("${A:-b}"):    "template error: variable 'X': ${A:-b} is not a path of names such as ${resources.db.host}: write $${ for the characters ${ themselves",
		variable("${}"):        "template error: variable 'X': ${} is not a path of names such as ${resources.db.host}: write $${ for the characters ${ themselves",

		variable("${secret.nope.k}"):                  "variable 'X' references secret resource 'nope' which does not exist",
		variable("${secret.v.k}"):                     "variable 'X' references resource 'v' as a secret but it is type 'volume'",
		variable("${secret.s.z}"):                     "variable 'X' references key 'z' of secret resource 's', which is not among its keys",
		variable("${secret.s}"):                       "template error: variable 'X': ${secret.s} must be ${secret.RESOURCE.KEY}",
		variable("a ${secret.s.k} ${secret.other.k}"): "template error: variable 'X' mixes secrets of the stores 'p' and 'q': all secrets in one text must be of one",
	})
}

// TestValuesOfPlaceholdersAreBounded: a short placeholder may stand for a long value, and a job may have many. The
// operator holds all of them in memory.
func TestValuesOfPlaceholdersAreBounded(t *testing.T) {
	long := "r: {type: external-service, params: {endpoints: {default: 'https://a/" + strings.Repeat("x", 100_000) +
		"'}}}, " + secrets
	const want = "more than 16777216 bytes together in the job"
	for what, fields := range map[string]string{
		"a variable": "variables: {X: '" + strings.Repeat("${resources.r.url}", 200) + "'}",
		"several variables": "variables: {X: '" + strings.Repeat("${resources.r.url}", 100) + "', Y: '" +
			strings.Repeat("${resources.r.url}", 100) + "'}",
		"a file":                "files: {/f: {content: '" + strings.Repeat("${resources.r.url}", 200) + "'}}",
		"a file with a secret":  "files: {/f: {content: '${secret.s.k}" + strings.Repeat("${resources.r.url}", 200) + "'}}",
		"fewer, which are kept": "variables: {X: '${resources.r.url}${resources.r.url}'}",
	} {
		_, err := Compile(jobOf(t, dependent(fields, long)), everywhere())
		if kept := what == "fewer, which are kept"; kept && err != nil ||
			!kept && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %.200v, want an error: %v", what, err, !kept)
		}
	}
}

func TestErrorsOfFiles(t *testing.T) {
	file := func(path, fields string) string { return dependent("files: {'"+path+"': {"+fields+"}}", secrets) }
	const at = "file compilation error: container 'main': file "
	refused(t, Facts{}, map[string]string{
		file("/a", "content: '${nope}'"): at +
			"'/a': template error: file '/a': ${nope} is not defined",
		file("/a", "content: '${secret.nope.k}'"): at +
			"'/a': file '/a' references secret resource 'nope' which does not exist",
		file("/a", "content: '${secret.s.k}${secret.other.k}'"): at +
			"'/a': it mixes secrets of the stores 'p' and 'q': all secrets in one text must be of one",
		file("/a", "mode: '644'"): at +
			"'/a': it must have one of content, binaryContent and source",
		file("/a", "content: a, binaryContent: YQ=="): at +
			"'/a': it must have one of content, binaryContent and source",
		file("/a", "source: ./a"): at +
			"'/a': source names a file beside the manifest, which is not here: give its content",
		file("/a", "content: a, noExpand: true, reverseExpand: true"): at +
			"'/a': noExpand and reverseExpand exclude each other",
		file("/a", "binaryContent: '*hunter2*'"): at + "'/a': binaryContent is not base64",
		file("/a", "content: a, mode: '99'"): at +
			"'/a': mode must be three or four octal digits, not '99'",
		file("/a", "content: a, mode: '4755'"): at +
			"'/a': mode 4755 must not have setuid, setgid or sticky bits",
		file("/a", "content: a, mode: '666'"): at +
			"'/a': mode 666 must not let everybody write",
		file("a", "content: a"): at + "'a': the path 'a' must begin with /",
		file("/a/../b", "content: a"): at +
			"'/a/../b': the path '/a/../b' must be a plain one, without . and .. and empty parts",
		file("/a:b", "content: a"): at +
			"'/a:b': the path '/a:b' must not contain : or control characters",
		container("files: {/a/b: {content: a}, /a-b: {content: b}}"): at +
			"'/a/b': its key 'a-b' is that of file '/a-b' too: give one of them another path",
		file("/a", "content: "+strings.Repeat("x", maxFiles+1)): at +
			"'/a': the files of the container have more than 1048576 bytes together: use a volume",
		file("/a", "content: '${secret.s.k} "+strings.Repeat("x", maxFiles)+"'"): at +
			"'/a': it has more than 1048576 bytes: use a volume",
		file("/a", "binaryContent: '"+strings.Repeat("YWFh", maxFiles/3+1)+"'"): at +
			"'/a': the files of the container have more than 1048576 bytes together: use a volume",
	})
}

func TestErrorsOfVolumes(t *testing.T) {
	mount := func(fields string) string { return dependent("volumes: {/v: {"+fields+"}}", secrets) }
	const at = "invalid volume config: container 'main': volume at '/v': "
	refused(t, Facts{}, map[string]string{
		needing("type: volume"): "invalid volume config: resource 'r': a volume needs params.size, to be created, or the id of one that is there",
		// What the policy about rights does not see counts for nothing either.
		needing("type: volume, params: {Size: 1Gi}"):             "invalid volume config: resource 'r': a volume needs params.size, to be created, or the id of one that is there",
		needing("type: volume, params: {size: lots}"):            `invalid volume config: resource 'r': params: size must be an amount of storage such as 500Gi, not "lots"`,
		needing("type: volume, params: {size: '1e-2147483647'}"): `invalid volume config: resource 'r': params: size must be an amount of storage such as 500Gi, not "1e-214…`,
		needing("type: volume, params: {size: [1Gi]}"):           `invalid volume config: resource 'r': params: size must be an amount of storage such as 500Gi, not ["1Gi"]`,
		needing("type: volume, params: {size: '0'}"):             "invalid volume config: resource 'r': params.size must be more than 0, not 0",
		needing("type: volume, id: A"):                           "invalid volume config: resource 'r': the id of a volume must be a DNS label of at most 50 characters, not \"A\"",

		needing("type: volume, id: a, params: {accessMode: ReadWriteOnceM}"): "invalid volume config: resource 'r': params.accessMode must be ReadWriteOnce, ReadWriteMany or ReadOnlyMany, not \"ReadWriteOnceM\"",
		needing("type: volume, id: a, params: {storageClass: 3}"):            "invalid volume config: resource 'r': params.storageClass cannot be a number",

		mount("source: somewhere"):           at + "source must be ${resources.NAME}, not 'somewhere'",
		mount("source: '${resources.nope}'"): at + "source names resource 'nope' which does not exist",
		mount("source: '${resources.s}'"): at +
			"source names resource 's' but it is type 'secret', not 'volume'",
		mount("source: '${resources.v}', medium: Memory"): at + "medium and sizeLimit are for volumes without a source",
		mount("source: '${resources.v}', path: ../x"):     at + "the path '../x' must lie within the volume",
		container("volumes: {v: {}}"):                     "invalid volume config: container 'main': the path 'v' must begin with /",
		"workload: {containers: {a: {image: i, volumes: {/v: {}}}, " +
			"b: {image: i, volumes: {/v: {medium: Memory}}}}}": "invalid volume config: container 'b': volume at '/v': containers share an empty volume there: its medium and sizeLimit must be the same in all of them",
		"workload: {containers: {a: {image: i, files: {/f: {content: x}}, " +
			"volumes: {/v: {source: '${resources.a-files}'}}}}, resources: {a-files: {type: volume, id: v}}}": "invalid volume config: container 'a': volume at '/v': two volumes of different kinds would be named 'a-files': give one of them another name",
		"workload: {containers: {a: {image: i}}, resources: {r: {type: volume, id: v, params: {size: 1Gi}}, " +
			"q: {type: volume, id: v, params: {size: 2Gi}}}}": "invalid volume config: resource 'r': the volume 'v' is created by another task of the job too, with other params",
	})
}

func TestErrorsOfResources(t *testing.T) {
	secret := func(params string) string { return needing("type: secret, id: x, params: {" + params + "}") }
	gpu := func(params string) string { return needing("type: gpu, params: {" + params + "}") }
	external := func(params string) string { return needing("type: external-service, params: {" + params + "}") }
	refused(t, Facts{}, map[string]string{
		needing("type: secret, params: {provider: p}"): "secret resource 'r': missing 'id' field (remote key for secret store)",
		secret(""):            "invalid secret config: resource 'r': params.provider must name the ClusterSecretStore that has the secret",
		secret("provider: P"): "invalid secret config: resource 'r': params.provider must be the name of a ClusterSecretStore, not \"P\"",
		secret("provider: p, refreshInterval: 1d"): "invalid secret config: resource 'r': params.refreshInterval must be hours, minutes and seconds such as 1h30m, not \"1d\"",
		secret("provider: p, secretType: Mine"):    "invalid secret config: resource 'r': params.secretType \"Mine\" is not a type of secret that can be made",
		secret("provider: p, keys: ['a b']"):       "invalid secret config: resource 'r': params.keys: \"a b\" cannot be the key of a secret",
		gpu(""):                                    "resource 'r': params.count must be the number of GPUs, 1 or more",
		gpu("count: many"):                         "resource 'r': params.count cannot be a string",
		gpu("count: 100000"):                       "resource 'r': params.count cannot be 100000",
		gpu("count: 1, compute: 101"):              "resource 'r': params.compute must be a percentage from 1 to 100, not 101",
		gpu("count: 1, memory: 80GB"):              "resource 'r': params.memory must be such as 80Gi, 8192Mi or a number of MiB, not \"80GB\"",
		gpu("count: 1, memory: 9999999999Gi"):      "resource 'r': params.memory must be more than 0 and at most 1Pi, not \"9999999999Gi\"",
		gpu("count: 1, model: 'a b'"):              "resource 'r': params.model must be the name of a model, or the value of the label nvidia.com/gpu.product",
		gpu("count: 1, compute: 50"):               "resource 'r': params.compute is 50, but no node shares its GPUs: install Volcano's vGPU device plugin, so that nodes offer volcano.sh/vgpu-cores, set latticejob.gpus to vgpu if they will, or ask for 100",
		"workload: {containers: {a: {image: i}}, resources: {r: {type: gpu, params: {count: 1}}, q: {type: gpu, params: {count: 1}}}}": "resource 'r': the task has GPUs already, resource 'q': it can have one resource of type gpu",
		needing("type: service, id: db"):                      "resource 'r': service 'ns/db' does not exist",
		needing("type: service, id: A_b"):                     "resource 'r': the id of a service must be a DNS label, not \"A_b\"",
		external(""):                                          "resource 'r': params.endpoints must name at least one URL",
		external("endpoints: {a: '::'}"):                      "resource 'r': params.endpoints.a must be a URL such as https://api.example.com:443: it cannot be read",
		external("endpoints: {a: 'gopher://h'}"):              "resource 'r': params.endpoints.a must be a URL such as https://api.example.com:443: it needs a port, for that of scheme gopher is not known",
		external("endpoints: {a: '//h'}"):                     "resource 'r': params.endpoints.a must be a URL such as https://api.example.com:443: it needs a scheme and a host",
		external("endpoints: {a: 'http://h:0'}"):              "resource 'r': params.endpoints.a must be a URL such as https://api.example.com:443: its port is no number from 1 to 65535",
		external("endpoints: {a: 'http://h'}, resolution: x"): "resource 'r': params.resolution must be dns or static, not \"x\"",
		needing("type: external-service, id: 'entity:w:x'"):   "resource 'r': the id \"entity:w:x\" must be entity:NAME or entity:NAME:PORT",
		needing("type: external-service, id: 'entity:W'"):     "resource 'r': the id \"entity:W\" must be entity:NAME or entity:NAME:PORT",
	})
}

// Who may make jobs in a namespace may not read the Services of another.
func TestOfServicesElsewhereTheHostAloneIsTold(t *testing.T) {
	const there = "db: {type: service, id: postgres, namespace: data}"
	refused(t, everywhere(), map[string]string{
		dependent("variables: {X: '${resources.db.port}'}",
			there): "template error: variable 'X': ${resources.db.port}: resource 'db' is a service of namespace 'data': of another namespace's the host alone is told",
		dependent("variables: {X: '${resources.db.url}'}",
			there): "template error: variable 'X': ${resources.db.url}: resource 'db' is a service of namespace 'data': of another namespace's the host alone is told",
	})
	if _, err := Compile(jobOf(t, dependent("variables: {X: '${resources.db.host}'}", there)), everywhere()); err != nil {
		t.Error(err)
	}
}

// refused compiles tasks, each of which is wrong in its own way.
func refused(t *testing.T, facts Facts, wrong map[string]string) {
	t.Helper()
	for task, want := range wrong {
		_, err := Compile(jobOf(t, task), facts)
		if err == nil || err.Error() != inTask+want {
			t.Errorf("%s:\n got %v\nwant %s", shortened(task), err, inTask+want)
		}
	}
}

func TestErrorsOfJobs(t *testing.T) {
	plain := func() *lattice.LatticeJob { return jobOf(t, "replicas: 2\nworkload: {containers: {main: {image: i}}}") }
	for want, change := range map[string]func(*lattice.LatticeJob){
		"job has no tasks": func(j *lattice.LatticeJob) { j.Spec.Tasks = nil },
		"minAvailable is 3, but the tasks have 2 pods together": func(j *lattice.LatticeJob) {
			j.Spec.MinAvailable = ptr.To[int32](3)
		},
		"the name of pod " + strings.Repeat("j", 60) +
			"-t-1 would exceed 63 characters: give the job or task 't' a shorter name": func(j *lattice.LatticeJob) {
			j.Name = strings.Repeat("j", 60)
		},
	} {
		job := plain()
		change(job)
		if _, err := Compile(job, Facts{}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := Compile(plain(), Facts{}); err != nil {
		t.Errorf("the plain job: %v", err)
	}
}

func TestErrorsOfTrainings(t *testing.T) {
	job := func(task string, change func(*lattice.LatticeJob)) *lattice.LatticeJob {
		job := jobOf(t, task)
		job.Spec.Training = &lattice.TrainingConfig{CoordinatorTask: "t"}
		change(job)
		return job
	}
	as := func(*lattice.LatticeJob) {}
	runs := container("command: [/c]")
	for want, job := range map[string]*lattice.LatticeJob{
		"training names the coordinator task 'master', which does not exist": job(runs,
			func(j *lattice.LatticeJob) { j.Spec.Training.CoordinatorTask = "" }),
		"the name of a job that trains must be a DNS label, by which its pods find each other, not 'j.k'": job(runs,
			func(j *lattice.LatticeJob) { j.Name = "j.k" }),
		"training names the coordinator task 't', which has no pods: the others would look for its first for ever": job(
			"replicas: 0\n"+runs, as),
		"training task 't' has a container 'lattice-rank': it is that which tells ranks, give yours another name": job(
			"sidecars: {lattice-rank: {image: i}}\n"+runs, as),
		"training task 't' container 'main' mounts something at /lattice-ranks, where its rank is written: give it another path": job(
			container("command: [/c], volumes: {/lattice-ranks: {}}"), as),
		"training task 't' container 'main' must specify a command": job(
			container("args: [a]"), as),
		"training task 't' must have restartPolicy Never, not OnFailure: pods of a training are restarted together": job(
			"restartPolicy: OnFailure\n"+runs, as),
		inTask + "a task needs a container: workload.containers of it, or of the job's defaults, must have one": job("",
			func(j *lattice.LatticeJob) {
				j.Spec.Tasks["t"], j.Spec.Training = lattice.JobTaskSpec{}, nil
			}),
	} {
		if _, err := Compile(job, everywhere()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestServiceNamesOfTheCluster: before Kubernetes 1.36 a Service whose name begins with a digit is refused. Only jobs
// that train have one.
func TestServiceNamesOfTheCluster(t *testing.T) {
	for _, trains := range []bool{true, false} {
		for _, name := range []string{"7b-finetune", "finetune-7b"} {
			for _, strict := range []bool{true, false} {
				job, facts := jobOf(t, container("command: [/c]")), everywhere()
				job.Name, facts.StrictServiceNames = name, strict
				if trains {
					job.Spec.Training = &lattice.TrainingConfig{CoordinatorTask: "t"}
				}
				_, err := Compile(job, facts)
				if want := trains && strict && name == "7b-finetune"; (err != nil) != want ||
					want && !strings.Contains(err.Error(), "must begin with a letter on this cluster, not '7b-finetune'") {
					t.Errorf("%s, trains: %v, strict names: %v: got %v, want an error: %v", name, trains, strict, err, want)
				}
			}
		}
	}
}

// What a task says goes before the defaults, key by key.
func TestDefaultsAreMergedIntoTasks(t *testing.T) {
	job := jobOf(t, "replicas: 0\nimagePullSecrets: [mine]\nworkload: {containers: {main: {args: [mine]}}, resources: {g: {type: gpu, params: {count: 2}}}}")
	defaults := jobOf(t, "replicas: 5\nrestartPolicy: OnFailure\nimagePullSecrets: [a, b]\nworkload: {containers: {main: {image: i, args: [a, b]}, more: {image: i}}, resources: {g: {type: gpu, params: {count: 1, model: T4}}}}").Spec.Tasks["t"]
	job.Spec.Defaults = &defaults
	tasks, err := Tasks(job)
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(tasks["t"])
	if err != nil {
		t.Fatal(err)
	}
	want := `imagePullSecrets:
- mine
replicas: 0
restartPolicy: OnFailure
workload:
  containers:
    main:
      args:
      - mine
      image: i
    more:
      image: i
  resources:
    g:
      params:
        count: 2
        model: T4
      type: gpu
`
	if string(got) != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// No and none are said as well as yes and some are.
func TestWhatATaskTurnsOffIsOff(t *testing.T) {
	job := jobOf(t, "hostNetwork: false\n"+
		container("volumes: {/data: {readOnly: false}}, files: {/f: {noExpand: false}, /g: {reverseExpand: false}}, livenessProbe: {initialDelaySeconds: 0}"))
	defaults := jobOf(t, "hostNetwork: true\n"+container(
		"volumes: {/data: {readOnly: true}}, files: {/f: {content: '${metadata.name}', noExpand: true}, /g: {content: '$${x} ${metadata.name}', reverseExpand: true}}, livenessProbe: {initialDelaySeconds: 9, exec: {command: [/c]}}")).Spec.Tasks["t"]
	job.Spec.Defaults = &defaults
	result, err := Compile(job, everywhere())
	if err != nil {
		t.Fatal(err)
	}
	pod := result.VCJob.Spec.Tasks[0].Template.Spec
	main := pod.Containers[0]
	if pod.HostNetwork || main.VolumeMounts[len(main.VolumeMounts)-1].ReadOnly ||
		main.LivenessProbe.InitialDelaySeconds != 0 {
		t.Errorf("hostNetwork %v, mounts %v, probe %v", pod.HostNetwork, main.VolumeMounts, main.LivenessProbe)
	}
	for _, o := range result.Objects {
		if texts, ok := o.(*corev1.ConfigMap); ok && (texts.Data["f"] != "j-t" || texts.Data["g"] != "${x} j-t") {
			t.Errorf("files %q", texts.Data)
		}
	}
}

// Names that come to the same are told, for what bears them would be overwritten unseen.
func TestTwoObjectsOfOneNameAreRefused(t *testing.T) {
	two := func(first, second string) *lattice.LatticeJob {
		job := jobOf(t, first)
		job.Spec.Tasks = map[string]lattice.JobTaskSpec{"a": job.Spec.Tasks["t"], "a-b": jobOf(t, second).Spec.Tasks["t"]}
		return job
	}
	const mend = ": give the job's tasks, containers or resources other names"
	for want, job := range map[string]*lattice.LatticeJob{
		"compilation failed for task 'a-b': ConfigMap 'j-a-b-c-env' of task 'a-b' would overwrite that of task 'a'" + mend: two(
			"workload: {containers: {b-c: {image: i, variables: {X: one}}}}",
			"workload: {containers: {c: {image: i, variables: {X: two}}}}"),
		"compilation failed for task 'a-b': ConfigMap 'j-a-b-c-files' of task 'a-b' would overwrite that of task 'a'" + mend: two(
			"workload: {containers: {b-c: {image: i, files: {/f: {content: one}}}}}",
			"workload: {containers: {c: {image: i, files: {/f: {content: two}}}}}"),
		"compilation failed for task 'a-b': PersistentVolumeClaim 'j-a-b-c' of task 'a-b' would overwrite that of task 'a'" + mend: two(
			"workload: {containers: {m: {image: i}}, resources: {b-c: {type: volume, params: {size: 1Gi}}}}",
			"workload: {containers: {m: {image: i}}, resources: {c: {type: volume, params: {size: 1Gi}}}}"),
		inTask + "Secret 'j-t-m-files-bin' of task 't' would overwrite that of task 't'" + mend: jobOf(t,
			"workload: {containers: {m: {image: i, files: {/f: {binaryContent: YQ==}}}}, resources: {m-files-bin: {type: secret, id: x, params: {provider: p}}}}"),
	} {
		if _, err := Compile(job, everywhere()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	// Who names an id shares the claim.
	shared := "workload: {containers: {m: {image: i}}, resources: {r: {type: volume, id: v, params: {size: 1Gi}}}}"
	if _, err := Compile(two(shared, shared), everywhere()); err != nil {
		t.Error(err)
	}
}

// Volumes of secret files are told apart though their names are cut.
func TestLongPathsOfSecretFiles(t *testing.T) {
	at := "/etc/" + strings.Repeat("x", 70)
	job := jobOf(t,
		dependent("files: {"+at+"1: {content: 'a ${secret.s.k}'}, "+at+"2: {content: 'b ${secret.s.k}'}}", secrets))
	result, err := Compile(job, everywhere())
	if err != nil {
		t.Fatal(err)
	}
	pod := result.VCJob.Spec.Tasks[0].Template.Spec
	checkFiles(t, &pod, job.Spec.Tasks["t"].Workload.Containers["main"].Files)
}

// TestErrorsOfNumbers: what is looked up for each part of a job is bounded.
func TestErrorsOfNumbers(t *testing.T) {
	many := func(n int, format string) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, format+", ", i)
		}
		return out.String()
	}
	refused(t, everywhere(), map[string]string{
		needing("type: secret, id: x, params: {provider: p, keys: [" + many(257, "k%d") +
			"]}"): "invalid secret config: resource 'r': params.keys has 257 keys, more than 256",
	})
	job := jobOf(t, dependent("", many(129, "r%d: {type: service, id: s%[1]d}")))
	if _, err := Compile(job, everywhere()); err == nil || err.Error() != "its tasks call 129 services, more than 128" {
		t.Errorf("compiling a job that calls 129 services: %v", err)
	}
	secretFiles := jobOf(t, dependent("files: {"+many(4096, "/f%d: {content: 'a ${secret.s.k}'}")+"}", secrets))
	const want = inTask + "the job needs more than 4096 ConfigMaps, Secrets and other objects: give it fewer files with secrets, or split it"
	if _, err := Compile(secretFiles, everywhere()); err == nil || err.Error() != want {
		t.Errorf("compiling a job with 4096 secret files: %v", err)
	}
}

// defaulting returns the job with its task as the defaults of so many tasks.
func defaulting(job *lattice.LatticeJob, tasks int) *lattice.LatticeJob {
	spec := job.Spec.Tasks["t"]
	job.Spec.Defaults, job.Spec.Tasks = &spec, map[string]lattice.JobTaskSpec{}
	for i := range tasks {
		job.Spec.Tasks[fmt.Sprintf("t%d", i)] = lattice.JobTaskSpec{}
	}
	return job
}

// TestDefaultsAreBounded: each task has a copy of what is in the defaults, of which a megabyte would be gigabytes.
func TestDefaultsAreBounded(t *testing.T) {
	long := strings.Repeat("a, ", 5000)
	for what, test := range map[string]struct {
		job  *lattice.LatticeJob
		want string // "" if the job may be so
	}{
		"some long lists": {defaulting(jobOf(t, container("command: [/a], args: ["+long+"]")), 40), ""},
		"long lists": {defaulting(jobOf(t, container("command: [/a], args: ["+long+"]")), 64),
			"the defaults have 5007 values, more than 262144 in all 64 tasks together: give the job fewer tasks, or only some of them what is long"},
		"params": {defaulting(jobOf(t, needing("type: other, params: {x: ["+long+"]}")), 64),
			"the defaults have 5009 values, more than 262144 in all 64 tasks together: give the job fewer tasks, or only some of them what is long"},
		"some placeholders": {defaulting(jobOf(t,
			dependent("variables: {X: '"+strings.Repeat("${secret.s.k} ", 4000)+"'}", secrets)), 64), ""},
		"placeholders for secrets": {
			defaulting(jobOf(t, dependent("variables: {X: '"+strings.Repeat("${secret.s.k} ", 5000)+"'}", secrets)), 64),
			"compilation failed for task 't56': template error: variable 'X': the values of placeholders have more than 16777216 bytes together in the job, where each counts at least 64"},
		"placeholders for short values": {
			defaulting(jobOf(t, container("variables: {X: '"+strings.Repeat("${metadata.name} ", 5000)+"'}")), 64),
			"compilation failed for task 't56': template error: variable 'X': the values of placeholders have more than 16777216 bytes together in the job, where each counts at least 64"},
	} {
		_, err := Compile(test.job, everywhere())
		if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("%s: got %.300v, want %s", what, err, test.want)
		}
	}
}

// TestVariablesAndFilesAreBounded: those of the defaults are in each task, and those of a training in each container.
// The operator holds all of them in memory, and etcd gets them.
func TestVariablesAndFilesAreBounded(t *testing.T) {
	var containers strings.Builder
	for i := range 32 {
		fmt.Fprintf(&containers, "c%d: {image: i, command: [/a]}, ", i)
	}
	long := strings.Repeat("x", 900_000)
	training := func(tasks int) *lattice.LatticeJob {
		job := defaulting(jobOf(t, "workload: {containers: {"+containers.String()+"}}"), tasks)
		job.Spec.Training = &lattice.TrainingConfig{CoordinatorTask: "t0",
			NCCL: &lattice.NCCLConfig{ExtraEnv: map[string]string{"X": long}}}
		return job
	}
	for what, test := range map[string]struct {
		job  *lattice.LatticeJob
		kept bool
	}{
		"variables of a small training": {training(2), true},
		"variables of a training":       {training(3), false},
		"files": {defaulting(jobOf(t,
			container("files: {/f: {content: '"+long+"'}, /g: {content: '"+long[:100_000]+"'}}")), 64), true},
		"files and variables": {defaulting(jobOf(t,
			container("variables: {X: '"+long+"'}, files: {/f: {content: '"+long+"'}}")), 64), false},
		"binary files": {defaulting(jobOf(t,
			container("variables: {X: '"+long+"'}, files: {/f: {binaryContent: '"+long+"'}}")), 64), false},
	} {
		_, err := Compile(test.job, everywhere())
		const want = "the variables and files of all containers have more than 67108864 bytes together in the job: use a volume"
		if test.kept && err != nil || !test.kept && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%s: %.300v, want an error: %v", what, err, !test.kept)
		}
	}
}

// TestWarningsAreFew: each becomes an event, and params may have any number of unknown names.
func TestWarningsAreFew(t *testing.T) {
	for unknown, want := range map[int]int{63: 63, 64: 64, 1000: 64} {
		var params strings.Builder
		for i := range unknown {
			fmt.Fprintf(&params, ", x%d: 1", i)
		}
		result, err := Compile(jobOf(t,
			needing("type: secret, id: x, params: {provider: p"+params.String()+"}")), everywhere())
		if err != nil || len(result.Warnings) != want {
			t.Fatalf("%d unknown params: %v, and not %d warnings", unknown, err, want)
		}
		if left := strings.Contains(result.Warnings[want-1], "left out"); left != (unknown >= 64) {
			t.Errorf("%d unknown params: the last warning is %q", unknown, result.Warnings[want-1])
		}
	}
}

// TestKeysOfSecretsAreFound: a key is the one with the name, or else the first one with the name where - and _ are
// equal.
func TestKeysOfSecretsAreFound(t *testing.T) {
	p := secretParams{Keys: []string{"a-b-c", "a_b_c", "d"}}
	for name, want := range map[string]string{"a-b-c": "a-b-c", "a_b_c": "a_b_c", "a-b_c": "a-b-c", "d": "d", "e": ""} {
		if key, listed := p.key(name); key != want || listed != (want != "") {
			t.Errorf("key %s: %q, %v, want %q", name, key, listed, want)
		}
	}
}
