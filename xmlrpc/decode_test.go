package xmlrpc

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// dump writes a value with its types, one per line.
func dump(b *strings.Builder, indent string, v any) {
	switch v := v.(type) {
	case []any:
		fmt.Fprintln(b, "array")
		for i, item := range v {
			fmt.Fprintf(b, "%s  %d: ", indent, i)
			dump(b, indent+"  ", item)
		}
	case map[string]any:
		fmt.Fprintln(b, "struct")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			fmt.Fprintf(b, "%s  %s: ", indent, name)
			dump(b, indent+"  ", v[name])
		}
	case string:
		fmt.Fprintf(b, "string %q\n", v)
	case []byte:
		fmt.Fprintf(b, "base64 %q\n", v)
	case time.Time:
		fmt.Fprintf(b, "dateTime %s\n", v.Format(time.RFC3339Nano))
	default:
		fmt.Fprintf(b, "%T %v\n", v, v)
	}
}

// TestClientsCalls reads what clients in several languages write.
func TestClientsCalls(t *testing.T) {
	files, err := filepath.Glob("testdata/calls/*.xml")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".xml"), func(t *testing.T) {
			doc, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			call, err := DecodeCall(doc, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			fmt.Fprintln(&got, call.Method)
			dump(&got, "", call.Params)
			golden := strings.TrimSuffix(file, ".xml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("got %s\nwant %s", got.String(), want)
			}
		})
	}
}

// call wraps a value into a document of one parameter.
func call(value string) string {
	return "<methodCall><methodName>m</methodName><params><param>" + value + "</param></params></methodCall>"
}

func TestDecodeValues(t *testing.T) {
	noon := time.Date(1998, 7, 17, 14, 8, 55, 0, time.UTC)
	for doc, want := range map[string]any{
		"<value>text</value>":                                                                        "text",
		"<value> text </value>":                                                                      " text ",
		"<value></value>":                                                                            "",
		"<value/>":                                                                                   "",
		"<value>  </value>":                                                                          "  ",
		"<value><string>a b</string></value>":                                                        "a b",
		"<value><string> \n</string></value>":                                                        " \n",
		"<value><string/></value>":                                                                   "",
		"<value>\n <string>x</string>\n</value>":                                                     "x",
		"<value>&lt;&gt;&amp;&quot;&apos;</value>":                                                   "<>&\"'",
		"<value>&#60;&#x3c;&#x3C;&#233;&#x1F600;</value>":                                            "<<<é\U0001F600",
		"<value>a\r\nb\rc&#13;d</value>":                                                             "a\nb\nc\rd",
		"<value>a<![CDATA[<b>&amp;\r\n]]]>c</value>":                                                 "a<b>&amp;\n]c",
		"<value><![CDATA[]]></value>":                                                                "",
		"<value>a<!-- no -->b<?pi no?>c</value>":                                                     "abc",
		"<value><!-- no --><int>1</int><!-- no --></value>":                                          1,
		"<value><string>]]&gt;</string></value>":                                                     "]]>",
		"<value><int>-2147483648</int></value>":                                                      math.MinInt32,
		"<value><i4> +2147483647\n</i4></value>":                                                     math.MaxInt32,
		"<value><i1>-128</i1></value>":                                                               -128,
		"<value><i2>32767</i2></value>":                                                              32767,
		"<value><i8>-9223372036854775808</i8></value>":                                               math.MinInt64,
		"<value><ex:i8>9223372036854775807</ex:i8></value>":                                          math.MaxInt64,
		"<value><int>007</int></value>":                                                              7,
		"<value><boolean>1</boolean></value>":                                                        true,
		"<value><boolean> 0 </boolean></value>":                                                      false,
		"<value><boolean>true</boolean></value>":                                                     true,
		"<value><double>-1.5e3</double></value>":                                                     -1500.0,
		"<value><double>3</double></value>":                                                          3.0,
		"<value><double>.5</double></value>":                                                         0.5,
		"<value><base64>aGVs\n bG8=</base64></value>":                                                []byte("hello"),
		"<value><base64/></value>":                                                                   []byte{},
		"<value><dateTime.iso8601>19980717T14:08:55</dateTime.iso8601></value>":                      noon,
		"<value><dateTime.iso8601>1998-07-17T14:08:55</dateTime.iso8601></value>":                    noon,
		"<value><dateTime.iso8601>1998-07-17T14:08:55Z</dateTime.iso8601></value>":                   noon,
		"<value><dateTime.iso8601>19980717T16:08:55+0200</dateTime.iso8601></value>":                 noon,
		"<value><dateTime.iso8601>19980717T16:08:55+02:00</dateTime.iso8601></value>":                noon,
		"<value><nil/></value>":                                                                      nil,
		"<value><nil></nil></value>":                                                                 nil,
		"<value><ex:nil/></value>":                                                                   nil,
		"<value xmlns:a='b' c = \"&amp;>\"><a:int d='e'>1</a:int ></value >":                         1,
		"<value><array><data></data></array></value>":                                                []any{},
		"<value><array><data/></array></value>":                                                      []any{},
		"<value><array/></value>":                                                                    []any{},
		"<value><array></array></value>":                                                             []any{},
		"<value><array><data><value>a</value> <value><int>1</int></value></data></array></value>":    []any{"a", 1},
		"<value><struct/></value>":                                                                   map[string]any{},
		"<value><struct> </struct></value>":                                                          map[string]any{},
		"<value><struct><member><name>a b</name><value/></member></struct></value>":                  map[string]any{"a b": ""},
		"<value><struct><member><name/><value>x</value></member></struct></value>":                   map[string]any{"": "x"},
		"<value><struct><member><name>&lt;</name> <value><array/></value></member></struct></value>": map[string]any{"<": []any{}},
	} {
		for _, head := range []string{"", "<?xml version='1.0'?>", "\n<?xml version=\"1.0\" encoding=\"utf-8\" standalone='yes'?>\n<!-- c -->",
			"\ufeff<?xml version='1.0' encoding='US-ASCII'?>"} {
			got, err := DecodeCall([]byte(head+call(doc)), Limits{})
			if err != nil {
				t.Errorf("%s: %v", doc, err)
				continue
			}
			if got.Method != "m" || !reflect.DeepEqual(got.Params, []any{want}) {
				t.Errorf("%s: got %#v, want %#v", doc, got.Params, want)
			}
		}
	}
}

func TestDecodeCallForms(t *testing.T) {
	for doc, want := range map[string]Call{
		"<methodCall><methodName>a</methodName></methodCall>":                                                                                                   {"a", []any{}},
		"<methodCall><methodName> a.B_c:d/9-\n</methodName><params/></methodCall>":                                                                              {"a.B_c:d/9-", []any{}},
		"<methodCall><methodName>a</methodName><params></params></methodCall>\n<!-- end -->\n":                                                                  {"a", []any{}},
		"<methodCall><methodName>a</methodName><params><param><value/></param>\n<param><value>b</value></param></params></methodCall>":                          {"a", []any{"", "b"}},
		"\ufeff<?xml version='1.0' encoding='latin1'?><methodCall><methodName>a</methodName><params><param><value>\xe9</value></param></params></methodCall>":   {"a", []any{"é"}},
		"<?xml version='1.0' encoding='ISO-8859-1'?><methodCall><methodName>a</methodName><params><param><value>\xe9\x80</value></param></params></methodCall>": {"a", []any{"é\u0080"}},
	} {
		got, err := DecodeCall([]byte(doc), Limits{})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, %v", doc, got, err)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	deep := strings.Repeat("<value><array><data>", 3) + "<value>"
	for name, test := range map[string]struct {
		doc   string
		code  int
		place string // also the line and column when not ""
		text  string
	}{
		"empty":               {"", NotWellFormed, "1:1", "the document ends"},
		"only a declaration":  {"<?xml version='1.0'?>\n", NotWellFormed, "2:1", "the document ends"},
		"text":                {"hello", NotWellFormed, "1:1", "no XML"},
		"JSON":                {`{"a": 1}`, NotWellFormed, "1:1", "no XML"},
		"HTML":                {"<!DOCTYPE html><html></html>", InvalidXMLRPC, "1:1", "document type"},
		"DTD":                 {`<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>` + call("<value>&b;</value>"), InvalidXMLRPC, "", "document type"},
		"entity":              {call("<value>&b;</value>"), NotWellFormed, "1:61 param 1", "&b; is not known"},
		"entity in attribute": {call("<value a='&b;'></value>"), NotWellFormed, "", "&b; is not known"},
		"bare &":              {call("<value>a & b</value>"), NotWellFormed, "", "begins no reference"},
		"& at the end":        {call("<value>a &</value>"), NotWellFormed, "", "begins no reference"},
		"long reference":      {call("<value>&#00000000000000065;</value>"), NotWellFormed, "", "begins no reference"},
		"&#0;":                {call("<value>&#0;</value>"), InvalidCharacter, "", "U+0000"},
		"&#xD800;":            {call("<value>&#xD800;</value>"), InvalidCharacter, "", "U+D800"},
		"&#xFFFF;":            {call("<value>&#xFFFF;</value>"), InvalidCharacter, "", "U+FFFF"},
		"&#x110000;":          {call("<value>&#x110000;</value>"), InvalidCharacter, "", "U+110000"},
		"&#-1;":               {call("<value>&#-1;</value>"), NotWellFormed, "", "is not known"},
		"&#x;":                {call("<value>&#x;</value>"), NotWellFormed, "", "is not known"},
		"control character":   {call("<value>\x01</value>"), InvalidCharacter, "", "U+0001"},
		"U+FFFF":              {call("<value>\uffff</value>"), InvalidCharacter, "", "U+FFFF"},
		"not UTF-8":           {"\n" + call("<value>é\xe9</value>"), InvalidCharacter, "2:62", "0xe9"},
		"UTF-16":              {"\xff\xfe<\x00", UnsupportedEncoding, "", "UTF-16"},
		"other encoding":      {"<?xml version='1.0' encoding='KOI8-R'?>" + call("<value/>"), UnsupportedEncoding, "1:1", "koi8-r"},
		"declaration cut":     {"<?xml version='1.0'", NotWellFormed, "1:1", "does not end"},
		"wrong root":          {"<methodResponse/>", InvalidXMLRPC, "1:1", "want <methodCall>, got <methodResponse>"},
		"two roots":           {call("<value/>") + "<a/>", InvalidXMLRPC, "", "after the end"},
		"text after the end":  {call("<value/>") + "x", InvalidXMLRPC, "", "text where"},
		"empty root":          {"<methodCall/>", NotWellFormed, "", "want <methodName>"},
		"no method":           {"<methodCall><params/></methodCall>", InvalidXMLRPC, "", "want <methodName>"},
		"empty method":        {"<methodCall><methodName> </methodName></methodCall>", InvalidXMLRPC, "", "no name"},
		"odd method":          {"<methodCall><methodName>a b</methodName></methodCall>", InvalidXMLRPC, "", `method "a b"`},
		"long method":         {"<methodCall><methodName>" + strings.Repeat("a", 256) + "</methodName></methodCall>", InvalidXMLRPC, "", "255"},
		"cut":                 {call("<value>a</value>")[:60], NotWellFormed, "", "ends"},
		"cut in a tag":        {"<methodCall><methodName>a</methodNa", NotWellFormed, "", "does not end"},
		"wrong end":           {call("<value></string>"), NotWellFormed, "1:61 param 1", "want </value>, got </string>"},
		"crossed":             {call("<value><int>1</value></int>"), NotWellFormed, "", "want </int>, got </value>"},
		"value missing":       {call(""), InvalidXMLRPC, "", "want <value>, got </param>"},
		"two values":          {call("<value/><value/>"), InvalidXMLRPC, "", "want </param>, got <value>"},
		"two types":           {call("<value><int>1</int><int>2</int></value>"), InvalidXMLRPC, "", "want </value>, got <int>"},
		"text and type":       {call("<value>a<int>1</int></value>"), InvalidXMLRPC, "", "both text and the element <int>"},
		"type and text":       {call("<value><int>1</int>a</value>"), InvalidXMLRPC, "", "text where"},
		"unknown type":        {call("<value><date>1</date></value>"), InvalidXMLRPC, "1:61 param 1", "<date> is not a type"},
		"no int":              {call("<value><int>1.5</int></value>"), InvalidXMLRPC, "1:61 param 1", `"1.5" is no whole number`},
		"empty int":           {call("<value><int/></value>"), InvalidXMLRPC, "", "no whole number"},
		"large int":           {call("<value><int>2147483648</int></value>"), InvalidXMLRPC, "", "does not fit into 32 bits"},
		"large i8":            {call("<value><i8>9223372036854775808</i8></value>"), InvalidXMLRPC, "", "does not fit into 64 bits"},
		"int with underscore": {call("<value><int>1_000</int></value>"), InvalidXMLRPC, "", "no whole number"},
		"boolean":             {call("<value><boolean>yes</boolean></value>"), InvalidXMLRPC, "", "neither 0 nor 1"},
		"NaN":                 {call("<value><double>NaN</double></value>"), InvalidXMLRPC, "", "no number"},
		"infinity":            {call("<value><double>1e999</double></value>"), InvalidXMLRPC, "", "no number"},
		"hexadecimal":         {call("<value><double>0x1p4</double></value>"), InvalidXMLRPC, "", "no number"},
		"base64":              {call("<value><base64>a-b</base64></value>"), InvalidXMLRPC, "", "not base64"},
		"time":                {call("<value><dateTime.iso8601>tomorrow</dateTime.iso8601></value>"), InvalidXMLRPC, "", "no time"},
		"nil with text":       {call("<value><nil>x</nil></value>"), InvalidXMLRPC, "", "text where"},
		"array without value": {call("<value><array><data><int>1</int></data></array></value>"), InvalidXMLRPC, "", "want <value> or </data>"},
		"array without data":  {call("<value><array><value/></array></value>"), InvalidXMLRPC, "", "want <data>"},
		"struct of values":    {call("<value><struct><value/></struct></value>"), InvalidXMLRPC, "", "want <member> or </struct>"},
		"member without name": {call("<value><struct><member><value/></member></struct></value>"), InvalidXMLRPC, "", "want <name>"},
		"member twice": {call("<value><struct><member><name>a</name><value/></member><member><name>a</name><value/></member></struct></value>"),
			InvalidXMLRPC, "", `member "a" is given twice`},
		"place": {"<methodCall><methodName>m</methodName><params>\n<param><value/></param>\n<param>" +
			"<value><struct><member><name>users</name><value><array><data><value/>\n<value><struct><member><name>keys</name><value><int>x</int></value>",
			InvalidXMLRPC, "4:48 param 2, member users[1].keys", `"x" is no whole number`},
		"place of an item": {call("<value><array><data><value/><value><array><data><value><int/></value></data></array></value></data></array></value>"),
			InvalidXMLRPC, "1:109 param 1[1][0]", "no whole number"},
		"name":               {"<1/>", NotWellFormed, "1:1", "without the name"},
		"<":                  {"<", NotWellFormed, "1:1", "without the name"},
		"< in text":          {call("<value>a < b</value>"), NotWellFormed, "", "without the name"},
		"odd tag":            {"<a,b>", NotWellFormed, "1:3", "cannot have"},
		"attribute":          {"<a b>", NotWellFormed, "1:4", "without value"},
		"no quotes":          {"<a b=c>", NotWellFormed, "", "not in quotes"},
		"open quotes":        {"<a b='c>", NotWellFormed, "", "does not end"},
		"< in attribute":     {"<a b='<'>", NotWellFormed, "", "< in the value"},
		"no space":           {"<a b='c'd='e'>", NotWellFormed, "", "cannot have"},
		"attribute in end":   {"<methodCall><methodName>a</methodName a='b'>", NotWellFormed, "", "cannot have"},
		"slash":              {"<a/ >", NotWellFormed, "", "cannot have"},
		"comment":            {"<!-- a", NotWellFormed, "", "does not end"},
		"comment in comment": {"<!-- a -- b -->", NotWellFormed, "", "has -- in it"},
		"late declaration":   {"<!-- a --><?xml version='1.0'?>", NotWellFormed, "", "no name"},
		"no instruction":     {"<? a?>", NotWellFormed, "", "no name"},
		"version":            {"<?xml version='2.0'?>", NotWellFormed, "", "version"},
		"]]> in text":        {call("<value>]]></value>"), NotWellFormed, "1:61 param 1", "]]>"},
		"two colons":         {"<a:b:c/>", NotWellFormed, "", "without the name"},
		"colon first":        {"<:b/>", NotWellFormed, "", "without the name"},
		"colon last":         {"<b:/>", NotWellFormed, "", "without the name"},
		"attribute's name":   {"<b a:b:c='d'/>", NotWellFormed, "", "name of an attribute"},
		"short comment":      {"<!-->", NotWellFormed, "", "does not end"},
		"instruction":        {"<?a", NotWellFormed, "", "does not end"},
		"CDATA":              {call("<value><![CDATA[ a</value>"), NotWellFormed, "", "CDATA section does not end"},
		"CDATA between":      {"<![CDATA[a]]>" + call("<value/>"), InvalidXMLRPC, "", "text where"},
		"DTD in text":        {call("<value>a<!DOCTYPE b></value>"), InvalidXMLRPC, "", "document type"},
		"cut deep inside":    {strings.TrimSuffix(call(deep), "</param></params></methodCall>") + "a", NotWellFormed, "", "ends within"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeCall([]byte(test.doc), Limits{})
			var e *DecodeError
			if !errors.As(err, &e) {
				t.Fatalf("got %#v, %v", got, err)
			}
			if e.Code != test.code || !strings.Contains(e.Text, test.text) {
				t.Errorf("got %d %s, want %d %s", e.Code, e.Text, test.code, test.text)
			}
			if at := strings.TrimSpace(fmt.Sprintf("%d:%d %s", e.Line, e.Column, e.Place)); test.place != "" && at != test.place {
				t.Errorf("at %q, want %q", at, test.place)
			}
			if !reflect.DeepEqual(got, Call{}) {
				t.Errorf("a call and an error: %v", got)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	nested := func(n int) string {
		return call(strings.Repeat("<value><array><data>", n) + strings.Repeat("</data></array></value>", n))
	}
	many := func(n int) string {
		return call("<value><array><data>" + strings.Repeat("<value/>", n) + "</data></array></value>")
	}
	text := func(n int) string { return call("<value>" + strings.Repeat("é", n/2) + "</value>") }
	escaped := func(n int) string { return call("<value>" + strings.Repeat("&lt;", n) + "</value>") }
	data := func(n int) string { return call("<value>" + strings.Repeat("<![CDATA[a]]>", n) + "</value>") }
	for name, test := range map[string]struct {
		limits    Limits
		good, bad string
		what      string
	}{
		"depth":           {Limits{Depth: 5}, nested(5), nested(6), "param 1[0][0][0][0][0]: more than 5 values within each other"},
		"default depth":   {Limits{}, nested(64), nested(65), "more than 64 values within"},
		"values":          {Limits{Values: 11}, many(10), many(11), "param 1[10]: more than 11 values in the document"},
		"default values":  {Limits{}, many(249_999), many(250_000), "more than 250000 values"},
		"string":          {Limits{String: 100}, text(100), text(102), "param 1: more than 100 bytes in a string"},
		"escaped string":  {Limits{String: 100}, escaped(100), escaped(101), "more than 100 bytes in a string"},
		"sections":        {Limits{String: 100}, data(100), data(101), "more than 100 bytes in a string"},
		"bytes":           {Limits{Bytes: int64(len(text(100)))}, text(100), text(102), "bytes in the document"},
		"string in bytes": {Limits{Bytes: 1 << 20}, text(1 << 19), text(1 << 20), "more than 1048576 bytes in the document"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeCall([]byte(test.good), test.limits); err != nil {
				t.Errorf("within the limit: %v", err)
			}
			_, err := DecodeCall([]byte(test.bad), test.limits)
			var e *LimitError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), test.what) {
				t.Errorf("got %v, want %q", err, test.what)
			}
		})
	}
}

func TestDecodeResponse(t *testing.T) {
	fault := func(code, text string) string {
		return "<methodResponse><fault><value><struct><member><name>faultCode</name>" + code +
			"</member><member><name>faultString</name>" + text + "</member></struct></value></fault></methodResponse>"
	}
	ok := func(v string) string {
		return "<?xml version='1.0'?>\n<methodResponse>\n<params>\n<param>\n" + v + "</param>\n</params>\n</methodResponse>\n"
	}
	for name, test := range map[string]struct {
		doc   string
		want  any
		fault *Fault
		err   string
	}{
		"result":        {ok("<value><struct><member><name>code</name><value><int>0</int></value></member></struct></value>"), map[string]any{"code": 0}, nil, ""},
		"nil":           {ok("<value><nil/></value>"), nil, nil, ""},
		"fault":         {fault("<value><int>-32601</int></value>", "<value><string>no</string></value>"), nil, &Fault{-32601, "no"}, ""},
		"fault in text": {fault("<value>503</value>", "<value>busy</value>"), nil, &Fault{503, "busy"}, ""},
		"odd fault":     {fault("<value>x</value>", "<value>busy</value>"), nil, nil, "fault, member faultCode: want an int, got a string"},
		"no text":       {fault("<value><int>1</int></value>", "<value><int>1</int></value>"), nil, nil, "fault, member faultString: want a string"},
		"fault no struct": {"<methodResponse><fault><value>x</value></fault></methodResponse>", nil, nil,
			"fault: want a struct, got a string"},
		"no result":   {"<methodResponse><params></params></methodResponse>", nil, nil, "want <param>"},
		"two results": {ok("<value/></param><param><value/>"), nil, nil, "want </params>, got <param>"},
		"empty":       {"<methodResponse/>", nil, nil, "want <params>"},
		"call":        {call("<value/>"), nil, nil, "want <methodResponse>"},
		"place":       {ok("<value><array><data><value><int/></value></data></array></value>"), nil, nil, "(result[0])"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeResponse([]byte(test.doc), Limits{})
			var f *Fault
			switch {
			case test.fault != nil:
				if !errors.As(err, &f) || *f != *test.fault {
					t.Errorf("got %v", err)
				}
			case test.err != "":
				if err == nil || errors.As(err, &f) || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, %v, want %q", got, err, test.err)
				}
			case err != nil || !reflect.DeepEqual(got, test.want):
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
