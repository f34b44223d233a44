//! Tests: every prefix and every changed byte of encoded structures ends in a value or an error.
//!
//! Types were encoded by h5py 3.16 for the oldest and, as "new", for the newest readers.

use crate::bytes::{Bytes, Sizes};
use crate::dataspace::Dataspace;
use crate::datatype::{Charset, Class, Datatype, Padding, Reference};
use crate::error::Result;
use crate::file::File;
use crate::fill::Fill;
use crate::filters::Pipeline;
use crate::global_heap::{GlobalHeap, HeapId};
use crate::testing;
use crate::value::{Value, Values};

const SIZES: Sizes = Sizes { address: 8, length: 8 };

const TYPES: &[(&str, &str)] = &[
    ("i4bits", "100800000400000003000c00"),
    ("IEEE_F16LE", "11200f0002000000000010000a05000a0f000000"),
    ("IEEE_F32BE", "11211f000400000000002000170800177f000000"),
    ("IEEE_F64LE", "11203f000800000000004000340b0034ff030000"),
    ("array", "2a0000000c0000000200000002000000030000000000000001000000100800000200000000001000"),
    ("b2", "140100000200000000001000"),
    (
        "big",
        "16010000701101006c61737400000000661101000000000000000000000000000000000000000000 \
         0000000000000000100800000800000000004000",
    ),
    (
        "compound",
        "160200000c0000006100000000000000000000000000000000000000000000000000000000000000 \
         00000000000000001008000004000000000020006c6f6e676572206e616d65000000000004000000 \
         0000000000000000000000000000000000000000000000000000000011213f000800000000004000 \
         340b0034ff030000",
    ),
    ("enum", "18020000010000001008000001000000000008004e4f00000000000059455300000000000001"),
    ("i2", "100800000200000000001000"),
    ("ldouble", "11004f001000000000005000400f0040ff3f0000"),
    (
        "nested",
        "260200001e000000780000000000000001000000260200000c000000610000000000000000000000 \
         1008000004000000000020006c6f6e676572206e616d6500000000000400000011213f0008000000 \
         00004000340b0034ff03000061727261790000000e0000002a0000000c0000000200000002000000 \
         030000000000000001000000100800000200000000001000",
    ),
    ("opaque", "1510000005000000746167206f66206d696e650000000000"),
    ("ref", "1700000008000000"),
    ("reg", "170100000c000000"),
    ("s5", "1312000005000000"),
    ("s7", "1300000007000000"),
    ("time", "12000000040000002000"),
    ("u4be", "100100000400000000002000"),
    (
        "vlen",
        "1900000010000000160200000c000000610000000000000000000000000000000000000000000000 \
         000000000000000000000000000000001008000004000000000020006c6f6e676572206e616d6500 \
         00000000040000000000000000000000000000000000000000000000000000000000000011213f00 \
         0800000000004000340b0034ff030000",
    ),
    ("vs", "1901010110000000100000000100000000000800"),
    ("new array", "5a0000000c000000020200000003000000100800000200000000001000"),
    ("new big", "56010000701101006c61737400661101100800000800000000004000"),
    (
        "new compound",
        "560200000c0000006100001008000004000000000020006c6f6e676572206e616d65000411213f00 \
         0800000000004000340b0034ff030000",
    ),
    ("new enum", "58020000010000001008000001000000000008004e4f00594553000001"),
    (
        "new nested",
        "560200001e000000780001560200000c0000006100001008000004000000000020006c6f6e676572 \
         206e616d65000411213f000800000000004000340b0034ff0300006172726179000e5a0000000c00 \
         0000020200000003000000100800000200000000001000",
    ),
    (
        "new vlen",
        "5900000010000000560200000c0000006100001008000004000000000020006c6f6e676572206e61 \
         6d65000411213f000800000000004000340b0034ff030000",
    ),
    ("cplx", "5b0100001000000011203f000800000000004000340b0034ff030000"),
    ("newref", "4712000012000000"),
    (
        "old array",
        "160100001c000000610000000000000004000000020000000000000000000000020000000300000000000000 \
         00000000100800000400000000002000",
    ),
];

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.as_chunks::<2>().0.iter();
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn fields(bytes: &[u8]) -> Bytes<'_> {
    Bytes::new("message", 0, bytes, SIZES)
}

fn datatype(name: &str) -> Datatype {
    let (_, hex) = TYPES.iter().find(|(other, _)| *other == name).unwrap();
    Datatype::decode(&mut fields(&bytes_of(hex))).unwrap()
}

/// Refuses every prefix; every byte is changed to every other.
fn mutate<T>(name: &str, bytes: &[u8], decode: impl Fn(&[u8]) -> Result<T>) {
    assert!(decode(bytes).is_ok(), "{name}: {}", decode(bytes).err().unwrap());
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end]).is_err(), "{name} of {end} bytes");
    }
    let mut changed = bytes.to_vec();
    for at in 0..bytes.len() {
        for value in 0..=255 {
            changed[at] = value;
            let _ = decode(&changed);
        }
        changed[at] = bytes[at];
    }
}

#[test]
fn mutated_datatypes_are_decoded_or_refused() {
    for (name, hex) in TYPES {
        let bytes = bytes_of(hex);
        mutate(name, &bytes, |bytes| Datatype::decode(&mut fields(bytes)));
        let mut fields = fields(&bytes);
        Datatype::decode(&mut fields).unwrap();
        assert_eq!(fields.remaining(), 0, "{name}");
    }
}

#[test]
fn types_are_the_same_in_every_version() {
    for name in ["array", "compound", "nested", "enum", "vlen", "big"] {
        assert_eq!(datatype(name), datatype(&format!("new {name}")), "{name}");
    }
    let Class::Compound(members) = datatype("nested").class else { panic!() };
    let names = members.iter().map(|member| (member.name.as_slice(), member.offset, member.datatype.size));
    assert_eq!(names.collect::<Vec<_>>(), [(&b"x"[..], 1, 12), (b"array", 14, 12)]);
    assert_eq!(members[0].datatype, datatype("compound"));
    assert_eq!(members[1].datatype, datatype("array"));
    let Class::Compound(members) = datatype("old array").class else { panic!() };
    assert!(matches!(&members[0].datatype.class, Class::Array { extents, .. } if extents == &[2, 3]));
    assert!(matches!(datatype("opaque").class, Class::Opaque { tag } if tag == b"tag of mine"));
    let Class::VariableString(text) = datatype("vs").class else { panic!() };
    assert_eq!((text.padding, text.charset), (Padding::NulTerminated, Charset::Utf8));
    assert_eq!(datatype("newref").class, Class::Reference(Reference::StandardObject));
    assert!(matches!(datatype("cplx").class, Class::Complex(_)));
    let Class::Enum { values, .. } = datatype("enum").class else { panic!() };
    assert_eq!(values, [(b"NO".to_vec(), vec![0]), (b"YES".to_vec(), vec![1])]);
}

#[test]
fn types_within_types_are_bounded() {
    // sequences of sequences of …
    let sequence = [0x19, 0, 0, 0, 16, 0, 0, 0].repeat(8000);
    let error = Datatype::decode(&mut fields(&sequence)).unwrap_err();
    assert_eq!(error.message(), "more than 32 types are within each other");
    // a compound that claims 65535 members
    assert!(Datatype::decode(&mut fields(&[0x36, 0xff, 0xff, 0, 1, 0, 0, 0])).is_err());
}

#[test]
fn mutated_messages_are_decoded_or_refused() {
    let space = [[2, 2, 1, 1].as_slice(), &[3, 0, 0, 0, 0, 0, 0, 0].repeat(2), &[0xff; 16]].concat();
    mutate("dataspace", &space, |bytes| Dataspace::decode(&mut fields(bytes)));
    let space = [[1, 1, 0, 0, 0, 0, 0, 0].as_slice(), &[3, 0, 0, 0, 0, 0, 0, 0]].concat();
    mutate("dataspace", &space, |bytes| Dataspace::decode(&mut fields(bytes)));
    mutate("fill", &[3, 0x2a, 2, 0, 0, 0, 5, 6], |bytes| Fill::decode(&mut fields(bytes)));
    mutate("fill", &[2, 2, 2, 1, 2, 0, 0, 0, 5, 6], |bytes| Fill::decode(&mut fields(bytes)));
    mutate("fill", &[2, 0, 0, 0, 5, 6], |bytes| Fill::decode_old(&mut fields(bytes)));
    let filters = b"\x02\x02\x00\x7d\x04\0\0\0\x01\0lzf\0\x07\0\0\0\x01\0\x01\0\0\0";
    mutate("filters", filters, |bytes| Pipeline::decode(&mut fields(bytes)));
}

/// A collection with objects 1, "hello", and 2, an element that names object 1, twice.
fn collection() -> Vec<u8> {
    let element = [5u32.to_le_bytes().as_slice(), &testing::START.to_le_bytes(), &1u32.to_le_bytes()].concat();
    let object = |number: u8, data: &[u8], padding: usize| {
        let head = [[number, 0, 1, 0, 0, 0, 0, 0], (data.len() as u64).to_le_bytes()].concat();
        [head.as_slice(), data, &vec![0; padding]].concat()
    };
    let free = [[0; 8], 16u64.to_le_bytes()].concat();
    let objects = [object(1, b"hello", 3), object(2, &element.repeat(2), 0), free].concat();
    let size = 16 + objects.len() as u64;
    [b"GCOL\x01\0\0\0".as_slice(), &size.to_le_bytes(), &objects].concat()
}

fn sequence_of_text(file: &File) -> Result<Vec<Value>> {
    let text = datatype("vs");
    let size = text.size;
    let sequence = Datatype { size, class: Class::Sequence(Box::new(text)) };
    let element = [2u32.to_le_bytes().as_slice(), &testing::START.to_le_bytes(), &2u32.to_le_bytes()].concat();
    Values::new(file).elements(&sequence, &element)
}

#[test]
fn mutated_heaps_are_read_or_refused() {
    let bytes = collection();
    let hello = Value::Text(b"hello".to_vec());
    assert_eq!(sequence_of_text(&testing::file(&bytes)).unwrap(), [Value::List(vec![hello.clone(), hello])]);
    mutate("heap", &bytes, |bytes| sequence_of_text(&testing::file(bytes)));
}

#[test]
fn missing_objects_are_named() {
    let file = testing::file(&collection());
    let mut heap = GlobalHeap::new(&file);
    assert_eq!(heap.object(HeapId { address: 96, number: 1 }).unwrap(), b"hello");
    for number in [0, 3, 65537] {
        let error = heap.object(HeapId { address: 96, number }).unwrap_err();
        let expected = format!("global heap collection at address 96: the collection has no object {number}");
        assert_eq!(error.to_string(), expected);
    }
    let long = [6u32.to_le_bytes().as_slice(), &96u64.to_le_bytes(), &1u32.to_le_bytes()].concat();
    let error = heap.sequence(&long, 1).unwrap_err();
    assert_eq!(error.message(), "object 1 has 5 bytes, the element has 6");
    assert_eq!(heap.sequence(&[0; 16], 1).unwrap(), b"");
}

#[test]
fn collections_are_whole_or_named() {
    let text = datatype("vs");
    let sequence = Datatype { size: 16, class: Class::Sequence(Box::new(text.clone())) };
    let element = |count: u32, number: u32| {
        [count.to_le_bytes().as_slice(), &testing::START.to_le_bytes(), &number.to_le_bytes()].concat()
    };
    let check = |bytes: &[u8], datatype: &Datatype, element: &[u8]| {
        GlobalHeap::new(&testing::file(bytes)).check(datatype, element).map_err(|error| error.message().to_owned())
    };
    let bytes = collection();
    assert_eq!(check(&bytes, &text, &element(5, 1)), Ok(()));
    assert_eq!(check(&bytes, &sequence, &element(2, 2)), Ok(()));
    assert!(check(&bytes, &text, &element(6, 1)).is_err());
    assert!(check(&bytes, &sequence, &element(3, 2)).is_err());
    // the free space at the end has no size, so that a reader may stay there for ever
    let mut endless = bytes;
    let size = (endless.len() as u64 + 16).to_le_bytes();
    endless[8..16].copy_from_slice(&size);
    endless.extend([0; 16]);
    let named = Err("the object at byte 104 of the collection is longer than what is left".to_owned());
    assert_eq!(check(&endless, &text, &element(5, 1)), named);
    assert_eq!(check(&endless, &sequence, &element(2, 2)), named);
}

#[test]
fn mutated_types_decode_any_elements() {
    let file = testing::file(&collection());
    for (_, hex) in TYPES {
        let mut bytes = bytes_of(hex);
        for at in 0..bytes.len() {
            let before = bytes[at];
            for value in [0, 1, 2, 3, 4, 8, 16, 32, 63, 64, 127, 128, 255] {
                bytes[at] = value;
                let Ok(datatype) = Datatype::decode(&mut fields(&bytes)) else { continue };
                if datatype.size() > 1 << 16 {
                    continue;
                }
                for element in [0u8, 0x55, 0xff] {
                    let elements = vec![element; datatype.size as usize];
                    let _ = Values::new(&file).elements(&datatype, &elements);
                }
            }
            bytes[at] = before;
        }
    }
}
