package sshtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Powered is something with a power button.
type Powered interface {
	On() bool
	PowerOn() error
	PowerOff()
}

// Redfish is a simulated Redfish service (DSP0266) of one system, close enough
// to real ones for redfishtool and sushy.
type Redfish struct {
	Machine        Powered
	User, Password string
	// Resets are the reset types that the system knows; nil for all below.
	Resets []string

	mu      sync.Mutex
	target  string // boot source override
	enabled string
	done    []string // resets, in order
}

const (
	systemPath = "/redfish/v1/Systems/1"
	resetPath  = systemPath + "/Actions/ComputerSystem.Reset"
)

var allResets = []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle"}

type object = map[string]any

// Done lists the resets that were asked for.
func (r *Redfish) Done() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.done)
}

// NextBoot is the boot source of the next boot, "None" for the usual one.
func (r *Redfish) NextBoot() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.enabled != "Once" {
		return "None"
	}
	return r.target
}

func (r *Redfish) resets() []string {
	if r.Resets != nil {
		return r.Resets
	}
	return allResets
}

func (r *Redfish) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	path := strings.TrimSuffix(q.URL.Path, "/")
	open := path == "/redfish" || path == "/redfish/v1"
	if user, password, _ := q.BasicAuth(); !open && (user != r.User || password != r.Password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="redfish"`)
		refuse(w, http.StatusUnauthorized, "the user name or the password is wrong")
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch q.Method + " " + path {
	case "GET /redfish":
		answer(w, object{"v1": "/redfish/v1/"})
	case "GET /redfish/v1":
		answer(w, object{
			"@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot", "@odata.id": "/redfish/v1/", "Id": "RootService", "Name": "Root Service",
			"RedfishVersion": "1.6.0", "UUID": "7b9c2f2e-6d0e-4c3f-8f43-0f6a1b0c9d11",
			"Systems": object{"@odata.id": "/redfish/v1/Systems"},
			"Links":   object{"Sessions": object{"@odata.id": "/redfish/v1/SessionService/Sessions"}},
		})
	case "GET /redfish/v1/Systems":
		answer(w, object{
			"@odata.type": "#ComputerSystemCollection.ComputerSystemCollection", "@odata.id": "/redfish/v1/Systems", "Name": "Systems",
			"Members@odata.count": 1, "Members": []object{{"@odata.id": systemPath}},
		})
	case "GET " + systemPath:
		w.Header().Set("ETag", `W/"`+r.target+r.enabled+`"`)
		answer(w, r.system())
	case "PATCH " + systemPath:
		r.override(w, q)
	case "POST " + resetPath:
		r.reset(w, q)
	default:
		refuse(w, http.StatusNotFound, "there is no resource "+path)
	}
}

func (r *Redfish) system() object {
	power := "Off"
	if r.Machine.On() {
		power = "On"
	}
	enabled, target := r.enabled, r.target
	if enabled == "" {
		enabled, target = "Disabled", "None"
	}
	return object{
		"@odata.type": "#ComputerSystem.v1_4_0.ComputerSystem", "@odata.id": systemPath, "Id": "1", "Name": "machine",
		"UUID": "38947555-7742-3448-3784-823347823834", "PowerState": power, "SystemType": "Physical",
		"Status": object{"State": "Enabled", "Health": "OK"},
		"Boot": object{
			"BootSourceOverrideEnabled": enabled, "BootSourceOverrideTarget": target,
			"BootSourceOverrideTarget@Redfish.AllowableValues": []string{"None", "Pxe", "Hdd", "Cd"},
		},
		"Actions": object{"#ComputerSystem.Reset": object{"target": resetPath, "ResetType@Redfish.AllowableValues": r.resets()}},
	}
}

func (r *Redfish) override(w http.ResponseWriter, q *http.Request) {
	var body struct {
		Boot struct{ BootSourceOverrideEnabled, BootSourceOverrideTarget string }
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, q.Body, 1<<16)).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if body.Boot.BootSourceOverrideTarget != "" {
		r.target = body.Boot.BootSourceOverrideTarget
	}
	if body.Boot.BootSourceOverrideEnabled != "" {
		r.enabled = body.Boot.BootSourceOverrideEnabled
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *Redfish) reset(w http.ResponseWriter, q *http.Request) {
	var body struct{ ResetType string }
	if err := json.NewDecoder(http.MaxBytesReader(w, q.Body, 1<<16)).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if !slices.Contains(r.resets(), body.ResetType) {
		refuse(w, http.StatusBadRequest, "the value "+body.ResetType+" is not among the values that ResetType can have")
		return
	}
	r.done = append(r.done, body.ResetType)
	if body.ResetType != "On" {
		r.Machine.PowerOff()
	}
	if body.ResetType == "On" || body.ResetType == "ForceRestart" || body.ResetType == "PowerCycle" {
		if err := r.Machine.PowerOn(); err != nil {
			refuse(w, http.StatusInternalServerError, err.Error())
			return
		}
		if r.enabled == "Once" {
			r.done = append(r.done, "boot from "+r.target)
			r.enabled = ""
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func answer(w http.ResponseWriter, v object) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("OData-Version", "4.0")
	_ = json.NewEncoder(w).Encode(v) // the client has gone, then
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("OData-Version", "4.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"error": object{
		"code": "Base.1.0.GeneralError", "message": "See @Message.ExtendedInfo",
		"@Message.ExtendedInfo": []object{{"MessageId": "Base.1.0.GeneralError", "Message": why}},
	}})
}
