package tosca
import ("testing";"context";"os";"archive/zip";"bytes";"path/filepath";"encoding/base64";"encoding/json";"fmt";"croft/languages")
func TestDump(t *testing.T){
 var b bytes.Buffer; z:=zip.NewWriter(&b)
 dir:="testdata/twotier"
 filepath.Walk(dir,func(p string,i os.FileInfo,_ error)error{ if i.IsDir(){return nil}; rel,_:=filepath.Rel(dir,p); w,_:=z.Create(rel); d,_:=os.ReadFile(p); w.Write(d); return nil})
 z.Close()
 c,err:=Language{}.Compile(context.Background(),[]byte(base64.StdEncoding.EncodeToString(b.Bytes())),languages.Scope{})
 fmt.Println(err)
 if c!=nil { for i:=range c.Request.Steps{ for j:=range c.Request.Steps[i].Files{c.Request.Steps[i].Files[j].Content=nil}}; j,_:=json.MarshalIndent(c.Request,""," "); fmt.Println(string(j)); fmt.Println(c.Warnings)}
}
